// Which optimization profile a delegate uses in one call: a pure function of the request, the shapes and the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/internal.h"
#include "core/profile_table.h"
#include "core/shape.h"
#include "core/status.h"

namespace executorch_tensorrt {

// What the caller asks of one execution.
struct Request {
  enum class Kind : std::uint8_t { kDefault, kPinned, kAuto };

  Kind kind = Kind::kDefault;
  std::int32_t index = 0;  // of kPinned

  static Request pinned(std::int32_t index) { return {Kind::kPinned, index}; }
  static Request automatic() { return {Kind::kAuto, 0}; }

  friend bool operator==(const Request& a, const Request& b) { return a.kind == b.kind && a.index == b.index; }
};

// "default", "pinned(1)", "auto"
ETRT_INTERNAL std::string to_string(const Request& request);

// The selected profile index. The profile accepts all of `shapes`; otherwise kInvalidArgument with a message that
// names the first input at fault, every profile's ranges and the profile that would accept the shapes.
//
// - default: what the method was loaded with (`load_default`), else profile 0
// - pinned N: profile N; a static engine with one profile runs it whatever N is, a dynamic one refuses N > 0
// - auto: the lowest index that accepts every input, whatever ran before
ETRT_INTERNAL Result<std::size_t> select_profile(const ProfileTable& table, const std::vector<Shape>& shapes,
                                                 Request request, Request load_default = {});

}  // namespace executorch_tensorrt
