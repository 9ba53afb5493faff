// What may be so of a method's values at a place of it, on some way there.
#pragma once

#include <cstdint>
#include <vector>

#include "verify/values.h"

namespace executorch_tensorrt {

using Kinds = std::uint16_t;
constexpr Kinds bit(Kind kind) { return static_cast<Kinds>(1u << static_cast<unsigned>(kind)); }
constexpr Kinds kNumbers = bit(Kind::kInt) | bit(Kind::kBool) | bit(Kind::kDouble);
constexpr Kinds kAtBorder = kNumbers | bit(Kind::kNone) | bit(Kind::kTensor) | bit(Kind::kString);

struct Fact {
  Kinds kinds = 0;
  bool is_constant = false;
  bool lacks_data = false;
  bool is_written = false;

  bool operator==(const Fact& other) const {
    return kinds == other.kinds && is_constant == other.is_constant && lacks_data == other.lacks_data &&
           is_written == other.is_written;
  }
};
using Facts = std::vector<Fact>;

// Whether anything is new.
inline bool merge(Facts& into, const Facts& from) {
  bool is_new = false;
  for (std::size_t k = 0; k < into.size(); ++k) {
    const Fact before = into[k];
    into[k].kinds |= from[k].kinds;
    into[k].is_constant |= from[k].is_constant;
    into[k].lacks_data |= from[k].lacks_data;
    into[k].is_written |= from[k].is_written;
    is_new = is_new || !(into[k] == before);
  }
  return is_new;
}

inline Kinds kinds_of(char operand) {
  switch (operand) {
    case 'T':
    case 'O':
    case 'Z':
      return bit(Kind::kTensor);
    case 'S':
      return kNumbers;
    case 'I':
      return bit(Kind::kInt);
    case 'F':
      return bit(Kind::kDouble);
    case 'B':
      return bit(Kind::kBool);
    case 'Y':
      return bit(Kind::kString);
    case 'L':
      return bit(Kind::kIntList);
    case 'D':
      return bit(Kind::kDoubleList);
    case 'G':
      return bit(Kind::kBoolList);
    case 'X':
    case 'W':
      return bit(Kind::kTensorList);
    case 'V':
      return bit(Kind::kOptionalTensorList);
    default:  // in lower case
      return kinds_of(static_cast<char>(operand - 'a' + 'A')) | bit(Kind::kNone);
  }
}

}  // namespace executorch_tensorrt
