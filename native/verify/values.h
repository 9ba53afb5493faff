// The values of a method: what its instructions read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "verify/flat_table.h"
#include "verify/parts.h"

namespace executorch_tensorrt {

// By the union KernelTypes of ExecuTorch's schema.
enum class Kind : std::uint8_t {
  kNothing,
  kNone,
  kInt,
  kBool,
  kDouble,
  kTensor,
  kString,
  kIntList,
  kDoubleList,
  kBoolList,
  kTensorList,
  kOptionalTensorList,
};

// Where a tensor's bytes come from.
enum class Memory : std::uint8_t { kCaller, kConstant, kPlanned };

struct Value {
  Kind kind = Kind::kNothing;
  std::int64_t number = 0;  // of an int

  // Of a tensor. Sizes are the largest ones, outermost in memory first.
  std::int8_t dtype = 0;
  std::size_t item_size = 0;
  std::vector<std::int32_t> sizes;
  std::uint64_t nbytes = 0;
  Memory memory = Memory::kCaller;
  bool is_on_device = false;

  // Of a list of ints or tensors: where they are among the values; -1 for none.
  std::vector<std::int64_t> items;
};

std::string kind_name(Kind kind);

// Throws Damage.
std::vector<Value> read_values(const FlatTable& method, const ProgramParts& parts);

}  // namespace executorch_tensorrt
