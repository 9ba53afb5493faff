#include "program/method_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "device/caller_stream.h"
#include "process/failure.h"

namespace executorch_tensorrt {
namespace {

using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
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

}  // namespace

MethodValues::MethodValues(Method& method, const MethodInfo& info) : method_(method), outputs_(info.outputs.size()) {
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    input_devices_.push_back(device_of(input_of(method, i)));
  }
}

Result<std::unique_ptr<MethodValues>> MethodValues::create(Method& method, const MethodInfo& info) {
  std::unique_ptr<MethodValues> values(new MethodValues(method, info));
  std::vector<std::optional<int>> devices = values->input_devices_;
  for (std::size_t o = 0; o < info.outputs.size(); ++o) {
    if (!info.outputs[o].tensor || info.outputs[o].tensor->is_memory_planned) {
      continue;
    }
    Output& output = values->outputs_[o];
    output.nbytes = std::max<std::size_t>(info.outputs[o].tensor->nbytes, 1);
    devices.push_back(device_of(method.get_output(o)));
    output.is_on_device = devices.back().has_value();
    if (!output.is_on_device) {
      output.memory.resize(output.nbytes);
      // Refused for a constant or an input that the method returns: those have memory.
      (void)method.set_output_data_ptr(output.memory.data(), output.nbytes, o);
    }
  }
  for (const std::optional<int>& device : devices) {
    if (device && values->device_ && device != values->device_) {
      return Status(StatusCode::kNotSupported, "method '" + info.name + "' takes and gives values on CUDA devices " +
                                                   std::to_string(*values->device_) + " and " +
                                                   std::to_string(*device) + ", allowed are those of one device");
    }
    values->device_ = device ? device : values->device_;
  }
  return values;
}

MethodValues::~MethodValues() {
  if (cuda_ == nullptr) {
    return;
  }
  const CudaDeviceScope scope(*cuda_, *device_);
  (void)copied_.wait();
  (void)last_.wait();  // staged inputs are read until then
  staged_.clear();
  events_.clear();
}

Status MethodValues::begin(std::vector<EValue>& inputs, const std::vector<DeviceOutput>& from) {
  is_begun_ = stages_ = false;
  ready_ = {};
  if (!device_) {
    return {};
  }
  if (cuda_ == nullptr) {
    const Result<const Cuda*> cuda = Cuda::get();
    if (!cuda.ok()) {
      return cuda.status();
    }
    pool_ = std::make_shared<DevicePool>(**cuda, *device_);
    cuda_ = *cuda;
  }
  const Result<CallStream> stream = CallStream::take(*cuda_);
  if (!stream.ok()) {
    return stream.status();
  }
  stream_ = *stream;
  const CudaDeviceScope scope(*cuda_, *device_);
  if (!scope.status().ok()) {
    return scope.status();
  }
  if (Status status = last_.put_before(stream_); !status.ok()) {
    return status;
  }
  is_begun_ = true;
  from_ = from;
  for (DeviceOutput& source : from_) {
    if (Status status = source.ready.put_before(stream_); !status.ok()) {
      return status;
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_elsewhere = input_devices_[i] && inputs[i].isTensor() && !device_of(inputs[i]);
    if (Status status = is_elsewhere ? stage(i, inputs[i]) : Status(); !status.ok()) {
      return status;
    }
  }
  if (stages_ && stream_.is_named) {
    if (Status status = mark(copied_); !status.ok()) {
      return status;
    }
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    if (Status status = outputs_[o].is_on_device ? take_output(o) : Status(); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status MethodValues::mark(WorkInFlight& work) {
  auto event = free_event();
  Status status = event.ok() ? (*event)->record(stream_.handle) : event.status();
  if (status.ok()) {
    work = {std::move(*event), stream_.id};
  }
  return status;
}

Status MethodValues::take_output(std::size_t o) {
  Output& output = outputs_[o];
  output.block.reset();  // unless the caller holds it, it is the block that this call gets again
  auto block = pool_->take(output.nbytes, stream_);
  if (!block.ok()) {
    return block.status();
  }
  const Error error = method_.set_output_data_ptr((*block)->data(), output.nbytes, o);
  if (error != Error::Ok) {
    return status_of("output " + std::to_string(o) + " takes no device memory", error);
  }
  output.block = std::move(*block);
  return {};
}

// Work may have been queued also where the call failed. On the thread's own stream, one that succeeded has waited.
Status MethodValues::end(bool has_succeeded) {
  if (!std::exchange(is_begun_, false)) {
    return {};
  }
  if (stream_.is_captured) {
    from_.clear();  // the caller keeps what his graph reads
    return {};
  }
  const CudaDeviceScope scope(*cuda_, *device_);
  Status status;
  if (stream_.is_named) {
    status = mark(last_);
    ready_ = status.ok() ? last_ : WorkInFlight{};
  }
  if (!status.ok() || (!stream_.is_named && !has_succeeded)) {
    cuda_->ignore(cuda_->StreamSynchronize(stream_.handle));
  }
  for (const DeviceOutput& source : from_) {
    if (ready_.end) {
      source.block->add_reader(ready_);
    }
  }
  from_.clear();
  return status;
}

Result<std::shared_ptr<DeviceEvent>> MethodValues::free_event() {
  const auto free =
      std::find_if(events_.begin(), events_.end(), [](const auto& event) { return event.use_count() == 1; });
  if (free != events_.end()) {
    return *free;
  }
  auto made = DeviceEvent::create(*cuda_);
  if (made.ok()) {
    events_.push_back(*made);
  }
  return made;
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

// The stream is behind the call before, which may have returned early and still reads what was staged for it.
Status MethodValues::stage(std::size_t input, EValue& value) {
  if (stream_.is_captured) {
    return invalid_argument("the caller's stream is being captured into a CUDA graph: got input " +
                            std::to_string(input) +
                            " on the host, allowed arrays on the device; give one, or end the capture");
  }
  stages_ = true;
  Status status;
  const Tensor from = value.toTensor();
  Staged& staged = staged_.try_emplace(input, *cuda_).first->second;
  if (from.nbytes() > staged.buffer.size() || staged.buffer.size() == 0) {
    status = last_.wait();
    if (status.ok()) {
      status = staged.buffer.grow(std::max<std::size_t>(from.nbytes(), 1), "an input");
    }
  }
  if (status.ok() && from.nbytes() > 0) {
    status = copy_in(staged, from.const_data_ptr(), from.nbytes());
  }
  if (!status.ok()) {
    return {status.code(), "copying input " + std::to_string(input) + " to the device: " + status.message()};
  }
  const TensorImpl* impl = from.unsafeGetTensorImpl();
  staged.tensor = std::make_unique<TensorImpl>(
      impl->scalar_type(), impl->dim(), const_cast<executorch::aten::SizesType*>(impl->sizes().data()),
      staged.buffer.data(), const_cast<executorch::aten::DimOrderType*>(impl->dim_order().data()),
      const_cast<executorch::aten::StridesType*>(impl->strides().data()), executorch::aten::TensorShapeDynamism::STATIC,
      DeviceType::CUDA, static_cast<executorch::runtime::etensor::DeviceIndex>(*device_));
  value = EValue(Tensor(staged.tensor.get()));
  return {};
}

Status MethodValues::copy_in(Staged& staged, const void* from, std::size_t nbytes) {
  const bool is_small = nbytes <= kMostPinned;
  if (is_small) {
    Status status = copied_.wait();  // what the call before left in the pinned memory
    if (status.ok()) {
      status = staged.pinned.grow(nbytes, "an input");
    }
    if (!status.ok()) {
      return status;
    }
    std::memcpy(staged.pinned.data(), from, nbytes);
    from = staged.pinned.data();
  }
  const int error = cuda_->MemcpyAsync(staged.buffer.data(), from, nbytes, kHostToDevice, stream_.handle);
  const int waited = is_small && error == 0 ? 0 : cuda_->StreamSynchronize(stream_.handle);
  return cuda_->check(error != 0 ? error : waited, "copying");
}

Status read_output(const Tensor& tensor, void* to) {
  if (tensor.nbytes() == 0) {
    return {};
  }
  if (tensor.device().is_cpu()) {
    std::memcpy(to, tensor.const_data_ptr(), tensor.nbytes());
    return {};
  }
  const Result<const Cuda*> cuda = Cuda::get();
  if (!cuda.ok()) {
    return cuda.status();
  }
  const CudaDeviceScope scope(**cuda, tensor.device_index());
  if (!scope.status().ok()) {
    return scope.status();
  }
  return copy_behind_calls(**cuda, to, tensor.const_data_ptr(), tensor.nbytes(), kDeviceToHost,
                           "copying an output from the device");
}

}  // namespace executorch_tensorrt
