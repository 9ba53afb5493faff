// The symbol by which ExecuTorch's CUDA library tells the stream of its CallerStreamGuard, and nothing else of it.
#include <optional>

namespace executorch::extension::cuda {

namespace {
thread_local std::optional<void*> stream;
}

std::optional<void*> getCallerStream() { return stream; }

}  // namespace executorch::extension::cuda

extern "C" void fake_set_caller_stream(void* stream) { executorch::extension::cuda::stream = stream; }
extern "C" void fake_clear_caller_stream() { executorch::extension::cuda::stream.reset(); }
