#include "core/profile_table.h"

#include <algorithm>
#include <utility>

namespace executorch_tensorrt {
namespace {

Status check_ranges(const std::string& input, std::size_t profile, const InputRanges& ranges) {
  if (ranges.size() > kMaxRank) {
    return invalid_program("input '" + input + "' has rank " + std::to_string(ranges.size()) + ", allowed 0.." +
                           std::to_string(kMaxRank));
  }
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const DimRange& r = ranges[d];
    if (r.min < 0 || r.min > r.opt || r.opt > r.max) {
      return invalid_program("input '" + input + "' dim " + std::to_string(d) + " in profile " +
                             std::to_string(profile) + ": got min " + std::to_string(r.min) + ", opt " +
                             std::to_string(r.opt) + ", max " + std::to_string(r.max) +
                             ", allowed 0 <= min <= opt <= max");
    }
  }
  return {};
}

bool accept_the_same(const InputRanges& one, const InputRanges& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const DimRange& a, const DimRange& b) { return a.min == b.min && a.max == b.max; });
}

bool ranges_vary(const InputRanges& first, const InputRanges& ranges) {
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    if (ranges[d].min != ranges[d].max || ranges[d].min != first[d].min) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string to_string(const InputRanges& ranges) {
  std::string text = "(";
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    text += d ? ", " : "";
    text += std::to_string(ranges[d].min);
    if (ranges[d].max != ranges[d].min) {
      text += ".." + std::to_string(ranges[d].max);
    }
  }
  return text + (ranges.size() == 1 ? ",)" : ")");
}

Result<ProfileTable> ProfileTable::create(std::vector<std::string> input_names, std::vector<ProfileRanges> profiles) {
  if (profiles.empty()) {
    return invalid_program("the engine has no optimization profile, allowed 1 or more");
  }
  ProfileTable table;
  for (std::size_t p = 0; p < profiles.size(); ++p) {
    if (profiles[p].size() != input_names.size()) {
      return invalid_program("profile " + std::to_string(p) + " has " + std::to_string(profiles[p].size()) +
                             " inputs, the engine has " + std::to_string(input_names.size()));
    }
    for (std::size_t i = 0; i < input_names.size(); ++i) {
      const InputRanges& first = profiles[0][i];
      const InputRanges& ranges = profiles[p][i];
      if (ranges.size() != first.size()) {
        return invalid_program("input '" + input_names[i] + "' has rank " + std::to_string(ranges.size()) +
                               " in profile " + std::to_string(p) + " and rank " + std::to_string(first.size()) +
                               " in profile 0");
      }
      if (Status status = check_ranges(input_names[i], p, ranges); !status.ok()) {
        return status;
      }
      table.is_static_ = table.is_static_ && !ranges_vary(first, ranges);
    }
  }
  table.input_names_ = std::move(input_names);
  table.profiles_ = std::move(profiles);
  return table;
}

Status check_reported(const ProfileTable& declared, const ProfileTable& reported) {
  const std::size_t count = std::min(declared.num_profiles(), reported.num_profiles());
  if (declared.num_profiles() != reported.num_profiles() && !(declared.is_static() && reported.is_static())) {
    return invalid_program("the engine has " + std::to_string(reported.num_profiles()) +
                           " optimization profiles, declared are " + std::to_string(declared.num_profiles()) +
                           "; declare those that it was built with");
  }
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t i = 0; i < declared.num_inputs(); ++i) {
      if (!accept_the_same(declared.ranges(p, i), reported.ranges(p, i))) {
        return invalid_program("input '" + declared.input_name(i) + "' in profile " + std::to_string(p) +
                               ": the engine takes " + to_string(reported.ranges(p, i)) + ", declared is " +
                               to_string(declared.ranges(p, i)) + "; declare the profiles that it was built with");
      }
    }
  }
  return {};
}

bool ProfileTable::contains(std::size_t profile, const std::vector<Shape>& shapes) const {
  const ProfileRanges& inputs = profiles_[profile];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InputRanges& ranges = inputs[i];
    const Shape& shape = shapes[i];
    if (shape.rank() != ranges.size()) {
      return false;
    }
    for (std::size_t d = 0; d < ranges.size(); ++d) {
      if (!ranges[d].contains(shape[d])) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace executorch_tensorrt
