// What a delegate was loaded with. Load-time option, else compile spec in the .pte, else the default.
#pragma once

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/backend/options.h>

#include "core/selection.h"
#include "core/status.h"

namespace executorch_tensorrt {

enum class ProfileLevel { kOff, kDelegate, kPhases, kLayers };

inline constexpr char kOptimizationProfileKey[] = "optimization_profile";
inline constexpr char kProfileLevelKey[] = "torchtrt_profile_level";

struct DelegateOptions {
  Request default_request;  // of calls without a guard
  ProfileLevel profile_level = ProfileLevel::kOff;
};

// kInvalidArgument for an unknown or repeated load-time key, a wrong type or a wrong value.
Result<DelegateOptions> resolve_options(
    executorch::runtime::Span<const executorch::runtime::BackendOption> load_options,
    executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> compile_specs);

}  // namespace executorch_tensorrt
