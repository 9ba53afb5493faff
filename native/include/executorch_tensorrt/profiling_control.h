// Process-wide profiling control: what every engine of this process traces, changed while programs are loaded.
#pragma once

#include <executorch/runtime/core/error.h>

#include <cstdint>
#include <string>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

// While set, it overrides what methods were loaded with; each engine takes it over at its next call. Thread-safe.
//
// `level`: "off", "delegate", "phases" or "layers". `format`: "etdump", or "perfetto" and "trex", which write one file
// per engine into the folder `path_prefix` when tracing ends: at the next call after a change, or when the method is
// unloaded. InvalidArgument for other words, a missing folder or one that cannot be written: take_last_error() says
// why, and nothing changes.
ETRT_API executorch::runtime::Error set_profiling(const std::string& level, const std::string& format = "etdump",
                                                  const std::string& path_prefix = "");

// Methods trace what they were loaded with again.
ETRT_API void clear_profiling();

struct ProfilingState {
  bool is_set = false;
  std::string level;
  std::string format;
  std::string path_prefix;
  std::uint64_t generation = 0;  // how often it was set or cleared
};

ETRT_API ProfilingState profiling_state();

}  // namespace executorch_tensorrt
