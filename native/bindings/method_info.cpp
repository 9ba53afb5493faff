#include "bindings/method_info.h"

#include <executorch/runtime/core/device_allocator.h>
#include <nanobind/nanobind.h>

#include "bindings/failure.h"
#include "core/shape.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Tag;

std::string missing_device(const executorch::runtime::MethodMeta& meta) {
  for (std::size_t b = 0; b < meta.num_memory_planned_buffers(); ++b) {
    const auto device = meta.memory_planned_buffer_device(b);
    if (device.ok() && !device->is_cpu() && executorch::runtime::get_device_allocator(device->type()) == nullptr) {
      return "cuda:" + std::to_string(device->index());  // ExecuTorch 1.5 knows no other
    }
  }
  return "";
}

template <typename T>
T value_or_raise(const std::string& what, executorch::runtime::Result<T> result) {
  check(what, result.error());
  return std::move(*result);
}

ValueMeta value_meta(Tag tag, const executorch::runtime::Result<executorch::runtime::TensorInfo>& info) {
  ValueMeta meta{tag, std::nullopt};
  if (tag == Tag::Tensor && info.ok()) {
    const auto sizes = info->sizes();
    const auto order = info->dim_order();
    meta.tensor = TensorMeta{static_cast<ScalarType>(info->scalar_type()),
                             {sizes.begin(), sizes.end()},
                             {order.begin(), order.end()},
                             info->nbytes(),
                             info->is_memory_planned()};
  }
  return meta;
}

std::string shape_text(const std::vector<std::int64_t>& dims) { return to_string(make_shape(dims)); }

}  // namespace

MethodInfo describe_method(const executorch::runtime::MethodMeta& meta) {
  MethodInfo info{meta.name(), {}, {}, {}, missing_device(meta)};
  const std::string damaged = "method '" + info.name + "' is damaged";
  for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
    info.inputs.push_back(value_meta(value_or_raise(damaged, meta.input_tag(i)), meta.input_tensor_meta(i)));
  }
  for (std::size_t o = 0; o < meta.num_outputs(); ++o) {
    info.outputs.push_back(value_meta(value_or_raise(damaged, meta.output_tag(o)), meta.output_tensor_meta(o)));
  }
  for (std::size_t b = 0; b < meta.num_backends(); ++b) {
    info.backends.emplace_back(value_or_raise(damaged, meta.get_backend_name(b)));
  }
  return info;
}

// ExecuTorch's loader would name the device by a number, in its log.
void check_device(const MethodInfo& info) {
  if (!info.missing_device.empty()) {
    throw ExecuTorchFailure("method '" + info.name + "' plans memory on '" + info.missing_device +
                            "', which this process does not have, allowed 'cpu'; run it on a machine with that "
                            "device, or export it with engine=\"cpu\"");
  }
}

// ExecuTorch checks the number of elements alone, and says so only in its log.
void check_bounds(const std::string& label, const std::vector<std::int64_t>& shape, const TensorMeta& meta) {
  if (shape.size() != meta.sizes.size()) {
    throw nanobind::value_error((label + ": got rank " + std::to_string(shape.size()) + " " + shape_text(shape) +
                                 ", allowed rank " + std::to_string(meta.sizes.size()) + " (at most " +
                                 shape_text(meta.sizes) + ")")
                                    .c_str());
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > meta.sizes[d]) {
      throw nanobind::value_error((label + " dim " + std::to_string(d) + ": got " + std::to_string(shape[d]) + " in " +
                                   shape_text(shape) + ", the program is planned for at most " + shape_text(meta.sizes))
                                      .c_str());
    }
  }
}

}  // namespace executorch_tensorrt
