// TensorRTBackend: the ExecuTorch delegate. Loading this library registers it.
#pragma once

#include "core/internal.h"

namespace executorch_tensorrt {

inline constexpr char kBackendId[] = "TensorRTBackend";

// Whether this library was built with ET_EVENT_TRACER_ENABLED.
ETRT_INTERNAL bool tracing_compiled_in();

}  // namespace executorch_tensorrt
