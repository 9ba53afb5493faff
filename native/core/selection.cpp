#include "core/selection.h"

namespace executorch_tensorrt {
namespace {

std::string describe_ranges(const ProfileTable& table) {
  std::string text;
  for (std::size_t p = 0; p < table.num_profiles(); ++p) {
    text += "; profile " + std::to_string(p) + " accepts";
    for (std::size_t i = 0; i < table.num_inputs(); ++i) {
      text += (i ? ", '" : " '") + table.input_name(i) + "' " + to_string(table.ranges(p, i));
    }
  }
  return text;
}

std::string describe_shapes(const ProfileTable& table, const std::vector<Shape>& shapes) {
  std::string text;
  for (std::size_t i = 0; i < table.num_inputs(); ++i) {
    text += (i ? ", '" : "'") + table.input_name(i) + "' " + to_string(shapes[i]);
  }
  return text;
}

// The lowest profile that accepts the shapes, or num_profiles().
std::size_t first_fit(const ProfileTable& table, const std::vector<Shape>& shapes) {
  std::size_t p = 0;
  while (p < table.num_profiles() && !table.contains(p, shapes)) {
    ++p;
  }
  return p;
}

// What is wrong with the first input that `profile` refuses.
std::string describe_fault(const ProfileTable& table, std::size_t profile, const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < table.num_inputs(); ++i) {
    const InputRanges& ranges = table.ranges(profile, i);
    const std::string input = "input '" + table.input_name(i) + "'";
    if (shapes[i].rank() != ranges.size()) {
      return input + ": got rank " + std::to_string(shapes[i].rank()) + " " + to_string(shapes[i]) + ", allowed rank " +
             std::to_string(ranges.size());
    }
    for (std::size_t d = 0; d < ranges.size(); ++d) {
      if (!ranges[d].contains(shapes[i][d])) {
        return input + " dim " + std::to_string(d) + ": got " + std::to_string(shapes[i][d]) + ", allowed " +
               std::to_string(ranges[d].min) + ".." + std::to_string(ranges[d].max);
      }
    }
  }
  return "no input";
}

Status outside_profile(const ProfileTable& table, std::size_t profile, const std::vector<Shape>& shapes) {
  std::string text = describe_fault(table, profile, shapes) + " in profile " + std::to_string(profile) + " (got " +
                     describe_shapes(table, shapes) + describe_ranges(table) + ")";
  const std::size_t fit = first_fit(table, shapes);
  if (fit < table.num_profiles()) {
    text += "; profile " + std::to_string(fit) + " accepts these shapes: use OptimizationProfileGuard(" +
            std::to_string(fit) + ") or automatic selection";
  } else {
    text += "; no profile accepts these shapes";
  }
  return invalid_argument(std::move(text));
}

Status outside_every_profile(const ProfileTable& table, const std::vector<Shape>& shapes) {
  return invalid_argument("no optimization profile accepts " + describe_shapes(table, shapes) + describe_ranges(table) +
                          "; " + describe_fault(table, 0, shapes) + " in profile 0");
}

Status index_out_of_range(const ProfileTable& table, std::int32_t index) {
  return invalid_argument("optimization profile index: got " + std::to_string(index) + ", allowed 0.." +
                          std::to_string(table.num_profiles() - 1) + describe_ranges(table));
}

}  // namespace

std::string to_string(const Request& request) {
  switch (request.kind) {
    case Request::Kind::kDefault:
      return "default";
    case Request::Kind::kPinned:
      return "pinned(" + std::to_string(request.index) + ")";
    case Request::Kind::kAuto:
      return "auto";
  }
  return "unknown";
}

Result<std::size_t> select_profile(const ProfileTable& table, const std::vector<Shape>& shapes, Request request,
                                   Request load_default) {
  if (request.kind == Request::Kind::kDefault) {
    request = load_default;
  }
  if (request.kind == Request::Kind::kAuto) {
    const std::size_t fit = first_fit(table, shapes);
    if (fit == table.num_profiles()) {
      return outside_every_profile(table, shapes);
    }
    return fit;
  }
  std::size_t profile = 0;
  if (request.kind == Request::Kind::kPinned) {
    const bool only_profile = table.num_profiles() == 1 && table.is_static();
    if (request.index < 0 || (!only_profile && static_cast<std::size_t>(request.index) >= table.num_profiles())) {
      return index_out_of_range(table, request.index);
    }
    profile = only_profile ? 0 : static_cast<std::size_t>(request.index);
  }
  if (!table.contains(profile, shapes)) {
    return outside_profile(table, profile, shapes);
  }
  return profile;
}

}  // namespace executorch_tensorrt
