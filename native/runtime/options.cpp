#include "runtime/options.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>

namespace executorch_tensorrt {
namespace {

using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;
using Text = std::array<char, executorch::runtime::kMaxOptionValueLength>;

constexpr struct {
  std::string_view name;
  ProfileLevel level;
} kLevels[] = {
    {"off", ProfileLevel::kOff},
    {"delegate", ProfileLevel::kDelegate},
    {"phases", ProfileLevel::kPhases},
    {"layers", ProfileLevel::kLayers},
};

Status wrong_value(const char* key, const std::string& got, const char* allowed) {
  return invalid_argument("option '" + std::string(key) + "': got " + got + ", allowed " + allowed);
}

// Option strings may lack their NUL.
std::string_view view_of(const Text& text) { return {text.data(), strnlen(text.data(), text.size())}; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string describe(const BackendOption& option) {
  if (const auto* flag = std::get_if<bool>(&option.value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* number = std::get_if<int>(&option.value)) {
    return std::to_string(*number);
  }
  return quoted(view_of(std::get<Text>(option.value)));
}

Status read_level(std::string_view name, ProfileLevel& out) {
  for (const auto& entry : kLevels) {
    if (entry.name == name) {
      out = entry.level;
      return {};
    }
  }
  return wrong_value(kProfileLevelKey, quoted(name), "'off', 'delegate', 'phases', 'layers'");
}

Status read_level_option(const BackendOption& option, DelegateOptions& out) {
  const auto* text = std::get_if<Text>(&option.value);
  return text != nullptr ? read_level(view_of(*text), out.profile_level)
                         : wrong_value(kProfileLevelKey, describe(option), "a string");
}

Status read_profile_option(const BackendOption& option, DelegateOptions& out) {
  if (const auto* index = std::get_if<int>(&option.value); index != nullptr && *index >= 0) {
    out.default_request = Request::pinned(*index);
    return {};
  }
  if (const auto* text = std::get_if<Text>(&option.value); text != nullptr && view_of(*text) == "auto") {
    out.default_request = Request::automatic();
    return {};
  }
  return wrong_value(kOptimizationProfileKey, describe(option), "'auto' or an index of 0 or more");
}

constexpr struct {
  const char* key;
  Status (*read)(const BackendOption&, DelegateOptions&);
} kLoadOptions[] = {
    {kOptimizationProfileKey, read_profile_option},
    {kProfileLevelKey, read_level_option},
};
constexpr std::size_t kNumLoadOptions = std::size(kLoadOptions);

std::size_t load_option_index(const BackendOption& option) {
  std::size_t k = 0;
  while (k < kNumLoadOptions && std::strncmp(option.key, kLoadOptions[k].key, sizeof(option.key)) != 0) {
    ++k;
  }
  return k;
}

}  // namespace

Result<DelegateOptions> resolve_options(executorch::runtime::Span<const BackendOption> load_options,
                                        executorch::runtime::ArrayRef<CompileSpec> compile_specs) {
  DelegateOptions options;
  for (const CompileSpec& spec : compile_specs) {
    if (std::strcmp(spec.key, kProfileLevelKey) == 0) {
      const std::string_view level(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
      if (Status status = read_level(level, options.profile_level); !status.ok()) {
        return status;
      }
    }
  }
  std::array<bool, kNumLoadOptions> seen{};
  for (const BackendOption& option : load_options) {
    const std::size_t k = load_option_index(option);
    const std::string key(option.key, strnlen(option.key, sizeof(option.key)));
    if (k == kNumLoadOptions) {
      return invalid_argument("load option '" + key + "' is unknown, allowed '" + kOptimizationProfileKey + "', '" +
                              kProfileLevelKey + "'");
    }
    if (seen[k]) {
      return invalid_argument("load option '" + key + "' is given twice");
    }
    seen[k] = true;
    if (Status status = kLoadOptions[k].read(option, options); !status.ok()) {
      return status;
    }
  }
  return options;
}

}  // namespace executorch_tensorrt
