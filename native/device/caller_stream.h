// The CUDA stream that the calling thread named for its calls.
#pragma once

#include <optional>

#include "device/cuda.h"

namespace executorch_tensorrt {

// That of the innermost CudaStreamGuard of this thread, else that of ExecuTorch's CallerStreamGuard, else none.
std::optional<CudaStream> caller_stream();

// Loading an engine while the caller captures that stream would end the process.
Status check_not_captured(const Cuda& cuda);

// Copies behind the work of this thread's calls, which may have returned early; done when it returns. CUDA's error,
// also where the caller captures his stream.
int copy_behind_calls(const Cuda& cuda, void* to, const void* from, std::size_t nbytes, CudaCopy direction);

// ExecuTorch's guard is in a library of its own, which may come later than this one: looked for when a method is
// loaded.
void find_executorch_stream();

}  // namespace executorch_tensorrt
