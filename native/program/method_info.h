// What a method takes and gives, and whether it can run here.
#pragma once

#include <executorch/runtime/core/tag.h>
#include <executorch/runtime/executor/method_meta.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/internal.h"
#include "core/scalar_type.h"
#include "core/status.h"

namespace executorch_tensorrt {

struct TensorMeta {
  ScalarType dtype;
  std::vector<std::int64_t> sizes;  // upper bounds
  std::vector<std::uint8_t> dim_order;
  std::size_t nbytes = 0;  // of the upper bounds
  bool is_memory_planned = true;
};

struct ValueMeta {
  executorch::runtime::Tag tag;
  std::optional<TensorMeta> tensor;
};

struct MethodInfo {
  std::string name;
  std::vector<ValueMeta> inputs;
  std::vector<ValueMeta> outputs;
  std::vector<std::string> backends;
  std::string missing_device;  // e.g. "cuda:0", when the method plans memory on a device that is not here
};

Result<MethodInfo> describe_method(const executorch::runtime::MethodMeta& meta);

// kNotSupported when the method plans memory on a device that is not here.
ETRT_INTERNAL Status check_device(const MethodInfo& info);

// kInvalidArgument, starting with `label`, for a shape of another rank or larger than planned.
ETRT_INTERNAL Status check_bounds(const std::string& label, const std::vector<std::int64_t>& shape,
                                  const TensorMeta& meta);

// kInvalidArgument, starting with `label`: the input has dtype `got` in place of `allowed`.
ETRT_INTERNAL Status wrong_dtype(const std::string& label, std::string_view got, ScalarType allowed);

}  // namespace executorch_tensorrt
