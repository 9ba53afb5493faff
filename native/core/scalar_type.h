// Element types, with the numbers that ExecuTorch and PyTorch give them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/internal.h"

namespace executorch_tensorrt {

enum class ScalarType : std::int8_t {
  kUnknown = -1,  // Torch-TensorRT's blobs leave the dtype empty
  kUInt8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kBool = 11,
  kBFloat16 = 15,
};

// PyTorch's name, "float32"; "unknown" for anything else.
ETRT_INTERNAL std::string_view to_string(ScalarType type);

// kUnknown for a name that is not PyTorch's.
ETRT_INTERNAL ScalarType scalar_type_from_name(std::string_view name);

// 0 for kUnknown.
ETRT_INTERNAL std::size_t element_size(ScalarType type);

}  // namespace executorch_tensorrt
