// The process-wide control as engines see it. The unchanged path is one atomic load.
#pragma once

#include <cstdint>
#include <optional>

#include "core/profiling_settings.h"

namespace executorch_tensorrt {

std::uint64_t profiling_generation();

struct ProfilingSnapshot {
  std::uint64_t generation = 0;
  std::optional<ProfilingSettings> settings;  // none: what the method was loaded with
};

ProfilingSnapshot profiling_snapshot();

}  // namespace executorch_tensorrt
