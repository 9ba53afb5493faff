// CudaStreamGuard: the CUDA stream of this thread's calls.
#pragma once

#include "executorch_tensorrt/api.h"
#include "executorch_tensorrt/guard.h"

namespace executorch_tensorrt {

// While it lives, engines on a GPU that this thread runs do so on `stream` (a cudaStream_t; null is CUDA's default
// stream). A call whose inputs and outputs all lie in device memory then returns as soon as its work is queued. Where
// ExecuTorch's own CallerStreamGuard is in the process, it has the same effect; of the two, this one counts.
class [[nodiscard]] CudaStreamGuard : public Guard {
 public:
  ETRT_API explicit CudaStreamGuard(void* stream);
};

}  // namespace executorch_tensorrt
