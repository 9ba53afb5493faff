// ProfileTable: what each optimization profile of an engine accepts, as ranges over every dim of every input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/internal.h"
#include "core/shape.h"
#include "core/status.h"

namespace executorch_tensorrt {

struct DimRange {
  std::int64_t min = 0;
  std::int64_t opt = 0;
  std::int64_t max = 0;

  bool contains(std::int64_t value) const { return min <= value && value <= max; }
};

// One input of one profile: a range per dim.
using InputRanges = std::vector<DimRange>;
// One profile: its inputs in binding order.
using ProfileRanges = std::vector<InputRanges>;

// "(1, 2..32)"
std::string to_string(const InputRanges& ranges);

class ProfileTable {
 public:
  // Fails with kInvalidProgram unless there is at least one profile, every profile has the same inputs with the
  // same ranks, and 0 <= min <= opt <= max in every dim.
  ETRT_INTERNAL static Result<ProfileTable> create(std::vector<std::string> input_names,
                                                   std::vector<ProfileRanges> profiles);

  std::size_t num_profiles() const { return profiles_.size(); }
  std::size_t num_inputs() const { return input_names_.size(); }
  const std::string& input_name(std::size_t input) const { return input_names_[input]; }
  const InputRanges& ranges(std::size_t profile, std::size_t input) const { return profiles_[profile][input]; }

  // True when no input dim can vary, within a profile or between profiles.
  bool is_static() const { return is_static_; }

  // Whether `profile` accepts all of `shapes` (one per input, in binding order).
  bool contains(std::size_t profile, const std::vector<Shape>& shapes) const;

 private:
  ProfileTable() = default;

  std::vector<std::string> input_names_;
  std::vector<ProfileRanges> profiles_;
  bool is_static_ = true;
};

// kInvalidProgram, naming input, profile and both values, unless an engine takes what was declared for it. Both tables
// have the same inputs. A static engine may have any number of profiles. `opt` is a matter of speed and not compared.
Status check_reported(const ProfileTable& declared, const ProfileTable& reported);

}  // namespace executorch_tensorrt
