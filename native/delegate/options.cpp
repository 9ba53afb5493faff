#include "delegate/options.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/text.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;
using Text = std::array<char, executorch::runtime::kMaxOptionValueLength>;

Status wrong_value(const char* key, const std::string& got, const char* allowed) {
  return invalid_argument("option '" + std::string(key) + "': got " + got + ", allowed " + allowed);
}

// Option strings may lack their NUL.
std::string_view view_of(const Text& text) { return {text.data(), strnlen(text.data(), text.size())}; }

std::string describe(const BackendOption& option) {
  if (const auto* flag = std::get_if<bool>(&option.value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* number = std::get_if<int>(&option.value)) {
    return std::to_string(*number);
  }
  return quoted(view_of(std::get<Text>(option.value)));
}

// A compile spec or a load-time option whose value is text.
using TextReader = Status (*)(std::string_view, ProfilingSettings&);

constexpr struct {
  const char* key;
  bool is_for_programs;  // also a compile spec
  TextReader read;
} kProfilingKeys[] = {
    {kProfileLevelKey, true,
     [](std::string_view text, ProfilingSettings& out) { return parse_level(text, out.level); }},
    {kProfileFormatKey, true,
     [](std::string_view text, ProfilingSettings& out) { return parse_format(text, out.format); }},
    {kProfilePathKey, false,
     [](std::string_view text, ProfilingSettings& out) { return parse_path_prefix(text, out.path_prefix); }},
};
constexpr std::size_t kNumProfilingKeys = std::size(kProfilingKeys);

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

Status read_cuda_graphs_text(std::string_view text, DelegateOptions& out) {
  out.use_cuda_graphs = text == "true" || text == "1";
  return out.use_cuda_graphs || text == "false" || text == "0"
             ? Status()
             : wrong_value(kCudaGraphsKey, quoted(text), "'true' or 'false'");
}

Status read_cuda_graphs_option(const BackendOption& option, DelegateOptions& out) {
  const auto* flag = std::get_if<bool>(&option.value);
  if (flag == nullptr) {
    return wrong_value(kCudaGraphsKey, describe(option), "true or false");
  }
  out.use_cuda_graphs = *flag;
  return {};
}

// Which of the profiling keys `key` is, or kNumProfilingKeys.
std::size_t profiling_key(std::string_view key) {
  std::size_t k = 0;
  while (k < kNumProfilingKeys && key != kProfilingKeys[k].key) {
    ++k;
  }
  return k;
}

Status given_twice(const std::string& key) { return invalid_argument("option '" + key + "' is given twice"); }

Status read_compile_specs(executorch::runtime::ArrayRef<CompileSpec> specs, DelegateOptions& out) {
  std::array<bool, kNumProfilingKeys + 1> seen{};
  for (const CompileSpec& spec : specs) {
    const bool graphs = std::string_view(spec.key) == kCudaGraphsKey;
    const std::size_t k = profiling_key(spec.key);
    if (k == kNumProfilingKeys && !graphs) {
      continue;  // the exporter's, or Torch-TensorRT's
    }
    if (std::exchange(seen[k], true)) {
      return given_twice(spec.key);
    }
    const std::string_view text(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
    if (!graphs && !kProfilingKeys[k].is_for_programs) {
      out.ignored = "option " + quoted(spec.key) + " in a program is ignored: got " + quoted(text) +
                    ", allowed where a program is loaded; give it there";
      continue;
    }
    if (Status status = graphs ? read_cuda_graphs_text(text, out) : kProfilingKeys[k].read(text, out.profiling);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

Status read_load_option(const std::string& key, const BackendOption& option, DelegateOptions& out) {
  if (key == kOptimizationProfileKey) {
    return read_profile_option(option, out);
  }
  if (key == kCudaGraphsKey) {
    return read_cuda_graphs_option(option, out);
  }
  const std::size_t k = profiling_key(key);
  if (k == kNumProfilingKeys) {
    std::string allowed = std::string("'") + kOptimizationProfileKey + "', '" + kCudaGraphsKey + "'";
    for (const auto& known : kProfilingKeys) {
      allowed += std::string(", '") + known.key + "'";
    }
    return invalid_argument("load option '" + key + "' is unknown, allowed " + allowed);
  }
  const auto* text = std::get_if<Text>(&option.value);
  return text != nullptr ? kProfilingKeys[k].read(view_of(*text), out.profiling)
                         : wrong_value(kProfilingKeys[k].key, describe(option), "a string");
}

}  // namespace

Result<DelegateOptions> resolve_options(executorch::runtime::Span<const BackendOption> load_options,
                                        executorch::runtime::ArrayRef<CompileSpec> compile_specs) {
  DelegateOptions options;
  if (Status status = read_compile_specs(compile_specs, options); !status.ok()) {
    return status;
  }
  std::vector<std::string> seen;
  for (const BackendOption& option : load_options) {
    std::string key(option.key, strnlen(option.key, sizeof(option.key)));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return given_twice(key);
    }
    if (Status status = read_load_option(key, option, options); !status.ok()) {
      return status;
    }
    seen.push_back(std::move(key));
  }
  ProfilingSettings& profiling = options.profiling;
  const bool asked = std::find(seen.begin(), seen.end(), kProfileFormatKey) != seen.end();
  if (profiling.writes_sidecar() && profiling.path_prefix.empty() && !asked) {
    options.ignored = "option " + quoted(kProfileFormatKey) + " in a program is ignored: got " +
                      quoted(to_string(profiling.format)) + ", which writes files; give " + quoted(kProfilePathKey) +
                      " a folder where the program is loaded";
    profiling.format = ProfileFormat::kEtdump;
  }
  if (Status status = check_settings(profiling); !status.ok()) {
    return status;
  }
  return options;
}

}  // namespace executorch_tensorrt
