// The CUDA stream that the calling thread named for its calls.
#pragma once

#include <optional>

#include "device/cuda.h"

namespace executorch_tensorrt {

// That of the innermost CudaStreamGuard of this thread, else that of ExecuTorch's CallerStreamGuard, else none.
std::optional<CudaStream> caller_stream();

// ExecuTorch's guard is in a library of its own, which may come later than this one: looked for when a method is
// loaded.
void find_executorch_stream();

}  // namespace executorch_tensorrt
