// The CUDA stream that the calling thread named for its calls.
#pragma once

#include <optional>

#include "core/internal.h"
#include "device/stream_order.h"

namespace executorch_tensorrt {

// That of the innermost CudaStreamGuard of this thread, else that of ExecuTorch's CallerStreamGuard, else none.
ETRT_INTERNAL std::optional<CudaStream> caller_stream();

// Loading an engine while the caller captures that stream would end the process.
ETRT_INTERNAL Status check_not_captured(const Cuda& cuda);

// Copies behind the work of this thread's calls, which may have returned early, and behind `work`, whichever stream
// that is on; done when it returns. Fails where the caller captures his stream.
ETRT_INTERNAL Status copy_behind_calls(const Cuda& cuda, void* to, const void* from, std::size_t nbytes,
                                       CudaCopy direction, const char* what, const WorkInFlight& work = {});

// ExecuTorch's guard is in a library of its own, which may come later than this one: looked for when a method is
// loaded.
void find_executorch_stream();

}  // namespace executorch_tensorrt
