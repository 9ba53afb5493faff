#include "device/caller_stream.h"

#include <dlfcn.h>

#include <atomic>

#include "core/guard_stack.h"
#include "executorch_tensorrt/cuda_stream_guard.h"

namespace executorch_tensorrt {
namespace {

constexpr int kErrorStreamCaptureUnsupported = 900;

// One per process, because it lives in this shared library and nowhere else.
thread_local const CudaStream* asked = nullptr;

// std::optional<cudaStream_t> executorch::extension::cuda::getCallerStream()
using GetCallerStream = std::optional<CudaStream> (*)();
constexpr char kGetCallerStream[] = "_ZN10executorch9extension4cuda15getCallerStreamEv";
std::atomic<GetCallerStream> get_caller_stream{nullptr};

}  // namespace

std::optional<CudaStream> caller_stream() {
  if (asked != nullptr) {
    return *asked;
  }
  const GetCallerStream get = get_caller_stream.load(std::memory_order_relaxed);
  return get != nullptr ? get() : std::nullopt;
}

Status check_not_captured(const Cuda& cuda) {
  const std::optional<CudaStream> named = caller_stream();
  int capturing = 0;
  cuda.ignore(named ? cuda.StreamIsCapturing(*named, &capturing) : 0);
  return capturing == 0 ? Status()
                        : invalid_argument(
                              "the caller's stream is being captured into a CUDA graph: got an engine to "
                              "load, allowed none; load the method before the capture");
}

Status copy_behind_calls(const Cuda& cuda, void* to, const void* from, std::size_t nbytes, CudaCopy direction,
                         const char* what, const WorkInFlight& work) {
  const std::optional<CudaStream> named = caller_stream();
  const CudaStream stream = named.value_or(per_thread_stream());
  int capturing = 0;
  if (const int error = named ? cuda.StreamIsCapturing(stream, &capturing) : 0; error != 0 || capturing != 0) {
    // Waiting would break the capture.
    return cuda.check(error != 0 ? error : kErrorStreamCaptureUnsupported, what);
  }
  if (Status status = work.end ? work.end->put_before(stream) : Status(); !status.ok()) {
    return status;
  }
  const int error = cuda.MemcpyAsync(to, from, nbytes, direction, stream);
  const int synchronized = cuda.StreamSynchronize(stream);  // also where it failed: nobody knows how far it came
  return cuda.check(error != 0 ? error : synchronized, what);
}

void find_executorch_stream() {
  if (void* found = dlsym(RTLD_DEFAULT, kGetCallerStream)) {
    get_caller_stream.store(reinterpret_cast<GetCallerStream>(found), std::memory_order_relaxed);
  }
}

CudaStreamGuard::CudaStreamGuard(void* stream)
    : Guard(GuardStackOf<CudaStream>::push("CudaStreamGuard", asked, stream)) {}

}  // namespace executorch_tensorrt
