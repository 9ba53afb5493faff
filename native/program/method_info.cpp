#include "program/method_info.h"

#include "core/shape.h"
#include "engines/registry.h"
#include "process/failure.h"
#include "program/device_allocator.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;
using executorch::runtime::Tag;
using executorch::runtime::TensorInfo;

std::string missing_device(const executorch::runtime::MethodMeta& meta) {
  for (std::size_t b = 0; b < meta.num_memory_planned_buffers(); ++b) {
    const auto device = meta.memory_planned_buffer_device(b);
    if (device.ok() && !device->is_cpu() && !device_memory_status().ok()) {
      return "cuda:" + std::to_string(device->index());  // ExecuTorch 1.5 knows no other
    }
  }
  return "";
}

// Adds to `values`.
Error add_value(const executorch::runtime::Result<Tag>& tag, const executorch::runtime::Result<TensorInfo>& info,
                std::vector<ValueMeta>& values) {
  if (!tag.ok()) {
    return tag.error();
  }
  ValueMeta meta{*tag, std::nullopt};
  if (*tag == Tag::Tensor && info.ok()) {
    const auto sizes = info->sizes();
    const auto order = info->dim_order();
    meta.tensor = TensorMeta{static_cast<ScalarType>(info->scalar_type()),
                             {sizes.begin(), sizes.end()},
                             {order.begin(), order.end()},
                             info->nbytes(),
                             info->is_memory_planned()};
  }
  values.push_back(std::move(meta));
  return Error::Ok;
}

std::string shape_text(const std::vector<std::int64_t>& dims) { return to_string(make_shape(dims)); }

}  // namespace

Result<MethodInfo> describe_method(const executorch::runtime::MethodMeta& meta) {
  MethodInfo info{meta.name(), {}, {}, {}, missing_device(meta)};
  const auto damaged = [&](Error error) { return status_of("method '" + info.name + "' is damaged", error); };
  for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
    const Error error = add_value(meta.input_tag(i), meta.input_tensor_meta(i), info.inputs);
    if (error != Error::Ok) {
      return damaged(error);
    }
  }
  for (std::size_t o = 0; o < meta.num_outputs(); ++o) {
    const Error error = add_value(meta.output_tag(o), meta.output_tensor_meta(o), info.outputs);
    if (error != Error::Ok) {
      return damaged(error);
    }
  }
  for (std::size_t b = 0; b < meta.num_backends(); ++b) {
    const auto name = meta.get_backend_name(b);
    if (!name.ok()) {
      return damaged(name.error());
    }
    info.backends.emplace_back(*name);
  }
  return info;
}

// ExecuTorch's loader would name the device by a number, in its log.
Status check_device(const MethodInfo& info) {
  if (info.missing_device.empty()) {
    return {};
  }
  std::string runtimes;
  for (const std::string& kind : engine_runtimes()) {
    runtimes += (runtimes.empty() ? "'" : ", '") + kind + "'";
  }
  return {StatusCode::kNotSupported,
          "method '" + info.name + "' plans memory on '" + info.missing_device +
              "': " + device_memory_status().message() + "; runtimes here are for engines of kind " + runtimes +
              "; run it on a machine with that device and TensorRT, or export the model with engine=\"cpu\""};
}

// ExecuTorch checks the number of elements alone, and says so only in its log.
Status check_bounds(const std::string& label, const std::vector<std::int64_t>& shape, const TensorMeta& meta) {
  if (shape.size() != meta.sizes.size()) {
    return invalid_argument(label + ": got rank " + std::to_string(shape.size()) + " " + shape_text(shape) +
                            ", allowed rank " + std::to_string(meta.sizes.size()) + " (at most " +
                            shape_text(meta.sizes) + ")");
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > meta.sizes[d]) {
      return invalid_argument(label + " dim " + std::to_string(d) + ": got " + std::to_string(shape[d]) + " in " +
                              shape_text(shape) + ", the program is planned for at most " + shape_text(meta.sizes));
    }
  }
  return {};
}

Status wrong_dtype(const std::string& label, std::string_view got, ScalarType allowed) {
  return invalid_argument(label + ": got dtype " + std::string(got) + ", allowed " + std::string(to_string(allowed)));
}

}  // namespace executorch_tensorrt
