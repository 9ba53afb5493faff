#include "core/scalar_type.h"

namespace executorch_tensorrt {
namespace {

struct Entry {
  ScalarType type;
  std::string_view name;
  std::size_t size;
};

constexpr Entry kTypes[] = {
    {ScalarType::kUInt8, "uint8", 1},       {ScalarType::kInt8, "int8", 1},       {ScalarType::kInt16, "int16", 2},
    {ScalarType::kInt32, "int32", 4},       {ScalarType::kInt64, "int64", 8},     {ScalarType::kFloat16, "float16", 2},
    {ScalarType::kFloat32, "float32", 4},   {ScalarType::kFloat64, "float64", 8}, {ScalarType::kBool, "bool", 1},
    {ScalarType::kBFloat16, "bfloat16", 2},
};

}  // namespace

std::string_view to_string(ScalarType type) {
  for (const Entry& entry : kTypes) {
    if (entry.type == type) {
      return entry.name;
    }
  }
  return "unknown";
}

ScalarType scalar_type_from_name(std::string_view name) {
  for (const Entry& entry : kTypes) {
    if (entry.name == name) {
      return entry.type;
    }
  }
  return ScalarType::kUnknown;
}

std::size_t element_size(ScalarType type) {
  for (const Entry& entry : kTypes) {
    if (entry.type == type) {
      return entry.size;
    }
  }
  return 0;
}

}  // namespace executorch_tensorrt
