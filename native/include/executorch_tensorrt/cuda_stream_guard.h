// CudaStreamGuard: the CUDA stream of this thread's calls.
#pragma once

#include <optional>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

// While it lives, engines on a GPU that this thread runs do so on `stream` (a cudaStream_t; null is CUDA's default
// stream). A call whose inputs and outputs all lie in device memory then returns as soon as its work is queued. Where
// ExecuTorch's own CallerStreamGuard is in the process, it has the same effect; of the two, this one counts. Guards
// nest, and end on their thread in the reverse order.
class [[nodiscard]] ETRT_API CudaStreamGuard {
 public:
  explicit CudaStreamGuard(void* stream);
  ~CudaStreamGuard();
  CudaStreamGuard(const CudaStreamGuard&) = delete;
  CudaStreamGuard& operator=(const CudaStreamGuard&) = delete;

 private:
  std::optional<void*> before_;
};

}  // namespace executorch_tensorrt
