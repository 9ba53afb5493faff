// What a delegate was loaded with. Load-time option, else compile spec in the .pte, else the default.
#pragma once

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/backend/options.h>

#include <string>

#include "core/profiling_settings.h"
#include "core/selection.h"
#include "core/status.h"

namespace executorch_tensorrt {

inline constexpr char kOptimizationProfileKey[] = "optimization_profile";
inline constexpr char kCudaGraphsKey[] = "use_cuda_graphs";  // also a compile spec, as text

struct DelegateOptions {
  Request default_request;  // of calls without a guard
  ProfilingSettings profiling;
  bool use_cuda_graphs = false;  // of engines on a device
  std::string ignored;           // what the program says and may not, in words
};

// Where files are written to, load options alone say: a program may be another's. kInvalidArgument for an unknown or
// repeated key, a wrong type or a wrong value, and for sidecars that cannot be written.
Result<DelegateOptions> resolve_options(
    executorch::runtime::Span<const executorch::runtime::BackendOption> load_options,
    executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> compile_specs);

}  // namespace executorch_tensorrt
