#include "device/stream_order.h"

#include "device/caller_stream.h"

namespace executorch_tensorrt {
namespace {

constexpr unsigned kDisableTiming = 2;
constexpr int kCaptureInvalidated = 2;

}  // namespace

StreamId id_of(const Cuda& cuda, CudaStream stream) {
  unsigned long long id = 0;
  if (cuda.StreamGetId == nullptr) {
    return std::nullopt;
  }
  const int error = cuda.StreamGetId(stream, &id);
  cuda.ignore(error);
  return error == 0 ? StreamId(id) : std::nullopt;
}

Result<CallStream> CallStream::take(const Cuda& cuda) {
  CallStream stream;
  const std::optional<CudaStream> named = caller_stream();
  if (!named) {
    return stream;
  }
  stream.handle = *named;
  stream.is_named = true;
  int capturing = 0;
  const int error = cuda.StreamIsCapturing(stream.handle, &capturing);
  if (error != 0) {
    return cuda.failure(error, "using the stream that the caller named");
  }
  if (capturing == kCaptureInvalidated) {
    return invalid_argument(
        "the caller's stream is being captured into a CUDA graph, which has failed: got a call of an engine, allowed "
        "none; end the capture before the call");
  }
  stream.is_captured = capturing != 0;
  if (!stream.is_captured) {
    stream.id = id_of(cuda, stream.handle);
  }
  return stream;
}

Result<std::shared_ptr<DeviceEvent>> DeviceEvent::create(const Cuda& cuda) {
  auto made = std::make_shared<DeviceEvent>(cuda);
  if (const int error = cuda.EventCreateWithFlags(&made->event_, kDisableTiming); error != 0) {
    return cuda.failure(error, "making an event");
  }
  return made;
}

}  // namespace executorch_tensorrt
