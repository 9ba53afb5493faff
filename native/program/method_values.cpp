#include "program/method_values.h"

#include <executorch/runtime/core/device_allocator.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>

#include "process/failure.h"

namespace executorch_tensorrt {
namespace {

using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::runtime::DeviceAllocator;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Method;
using executorch::runtime::etensor::DeviceType;

std::optional<int> device_of(const EValue& value) {
  if (!value.isTensor() || value.toTensor().device().is_cpu()) {
    return std::nullopt;
  }
  return value.toTensor().device_index();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the metadata of a method does not say it
const EValue& input_of(const Method& method, std::size_t input) { return method.get_input(input); }
#pragma GCC diagnostic pop

// Empty for what is no number.
std::string number_text(const EValue& value) {
  std::array<char, 32> text{};
  if (value.isDouble()) {
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value.toDouble()).ptr};
  }
  if (value.isBool()) {
    return value.toBool() ? "true" : "false";
  }
  return value.isInt() ? std::to_string(value.toInt()) : "";
}

Result<DeviceAllocator*> allocator() {
  DeviceAllocator* found = executorch::runtime::get_device_allocator(DeviceType::CUDA);
  if (found == nullptr) {
    return Status(StatusCode::kNotSupported, "nobody in this process allocates memory of a CUDA device");
  }
  return found;
}

}  // namespace

MethodValues::MethodValues(Method& method, const MethodInfo& info)
    : method_(method), staged_(info.inputs.size()), outputs_(info.outputs.size()) {
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    input_devices_.push_back(device_of(input_of(method, i)));
    has_device_values_ = has_device_values_ || input_devices_.back();
  }
}

Result<std::unique_ptr<MethodValues>> MethodValues::create(Method& method, const MethodInfo& info) {
  std::unique_ptr<MethodValues> values(new MethodValues(method, info));
  for (std::size_t o = 0; o < info.outputs.size(); ++o) {
    if (!info.outputs[o].tensor || info.outputs[o].tensor->is_memory_planned) {
      continue;
    }
    Output& output = values->outputs_[o];
    output.nbytes = std::max<std::size_t>(info.outputs[o].tensor->nbytes, 1);
    output.device = device_of(method.get_output(o));
    if (output.device) {
      values->has_device_values_ = true;
      continue;
    }
    output.memory.resize(output.nbytes);
    // Refused for a constant or an input that the method returns: those have memory.
    (void)method.set_output_data_ptr(output.memory.data(), output.nbytes, o);
  }
  return values;
}

Result<DevicePool*> MethodValues::pool(int device) {
  std::shared_ptr<DevicePool>& pool = pools_[device];
  if (!pool) {
    const Result<const Cuda*> cuda = Cuda::get();
    if (!cuda.ok()) {
      return cuda.status();
    }
    pool = std::make_shared<DevicePool>(**cuda, device);
  }
  return pool.get();
}

Status MethodValues::prepare(std::vector<EValue>& inputs) {
  if (!has_device_values_) {
    return {};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!input_devices_[i] || !inputs[i].isTensor() || device_of(inputs[i])) {
      continue;
    }
    if (Status status = stage(i, inputs[i]); !status.ok()) {
      return status;
    }
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    Output& output = outputs_[o];
    if (!output.device) {
      continue;
    }
    const Result<DevicePool*> memory = pool(*output.device);
    if (!memory.ok()) {
      return memory.status();
    }
    output.block.reset();  // unless the caller holds it, it is the block that this call gets again
    Result<std::shared_ptr<void>> block = (*memory)->take(output.nbytes);
    if (!block.ok()) {
      return block.status();
    }
    const Error error = method_.set_output_data_ptr(block->get(), output.nbytes, o);
    if (error != Error::Ok) {
      return status_of("output " + std::to_string(o) + " takes no device memory", error);
    }
    output.block = std::move(*block);
  }
  return {};
}

Status MethodValues::check_constants(const std::string& label, const std::vector<EValue>& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string got = number_text(inputs[i]);
    const std::string allowed = number_text(input_of(method_, i));
    if (got != allowed) {
      return invalid_argument(label + " input " + std::to_string(i) + ": got " + got + ", allowed " + allowed +
                              ", with which the program was exported; pass that, or export the model with a 0-d input");
    }
  }
  return {};
}

Status MethodValues::stage(std::size_t input, EValue& value) {
  const int device = *input_devices_[input];
  const Tensor from = value.toTensor();
  const Result<DevicePool*> memory = pool(device);
  if (!memory.ok()) {
    return memory.status();
  }
  Staged& staged = staged_[input];
  if (!staged.buffer) {
    staged.buffer = std::make_unique<DeviceBuffer>((*memory)->cuda());
  }
  {
    const CudaDeviceScope scope((*memory)->cuda(), device);
    if (Status status = staged.buffer->grow(std::max<std::size_t>(from.nbytes(), 1), "an input"); !status.ok()) {
      return status;
    }
  }
  const Result<DeviceAllocator*> copier = allocator();
  if (!copier.ok()) {
    return copier.status();
  }
  if (from.nbytes() > 0) {
    const auto index = static_cast<executorch::runtime::etensor::DeviceIndex>(device);
    const Error error =
        (*copier)->copy_host_to_device(staged.buffer->data(), from.const_data_ptr(), from.nbytes(), index);
    if (error != Error::Ok) {
      return status_of("copying input " + std::to_string(input) + " to the device", error);
    }
  }
  const TensorImpl* impl = from.unsafeGetTensorImpl();
  staged.tensor = std::make_unique<TensorImpl>(
      impl->scalar_type(), impl->dim(), const_cast<executorch::aten::SizesType*>(impl->sizes().data()),
      staged.buffer->data(), const_cast<executorch::aten::DimOrderType*>(impl->dim_order().data()),
      const_cast<executorch::aten::StridesType*>(impl->strides().data()), executorch::aten::TensorShapeDynamism::STATIC,
      DeviceType::CUDA, static_cast<executorch::runtime::etensor::DeviceIndex>(device));
  value = EValue(Tensor(staged.tensor.get()));
  return {};
}

Status read_output(const Tensor& tensor, void* to) {
  if (tensor.nbytes() == 0) {
    return {};
  }
  if (tensor.device().is_cpu()) {
    std::memcpy(to, tensor.const_data_ptr(), tensor.nbytes());
    return {};
  }
  const Result<DeviceAllocator*> copier = allocator();
  if (!copier.ok()) {
    return copier.status();
  }
  return status_of("copying an output from the device",
                   (*copier)->copy_device_to_host(to, tensor.const_data_ptr(), tensor.nbytes(), tensor.device_index()));
}

}  // namespace executorch_tensorrt
