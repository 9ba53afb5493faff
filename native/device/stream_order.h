// The order of work on streams: the stream of a call, and what it has to come behind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "device/cuda.h"

namespace executorch_tensorrt {

// What tells streams apart. A handle does not: it may stand for another stream by now, that of another thread, or one
// made after it. None before CUDA 12, or for a stream that nobody named.
using StreamId = std::optional<unsigned long long>;

// The stream that a call runs on: the one that the caller named for this thread, else the thread's own.
struct CallStream {
  CudaStream handle = per_thread_stream();
  bool is_named = false;
  // It is being captured into a graph of the caller's: the work is not done now, but whenever that graph runs. So the
  // stream is not ordered, waited for or marked with events.
  bool is_captured = false;
  StreamId id;

  // Whether work on the other is in order with work on this one. The thread's own streams of calls that nobody named
  // one for count as one: those calls are over when they return.
  bool is_same(const CallStream& other) const {
    return is_named == other.is_named && (!is_named || (id && other.id ? id == other.id : handle == other.handle));
  }

  // kInvalidArgument when its capture has failed.
  static Result<CallStream> take(const Cuda& cuda);
};

// An event that lives as long as anybody may wait for it.
class DeviceEvent {
 public:
  // On the current device.
  static Result<std::shared_ptr<DeviceEvent>> create(const Cuda& cuda);
  explicit DeviceEvent(const Cuda& cuda) : cuda_(cuda) {}
  ~DeviceEvent() { cuda_.ignore(event_ != nullptr ? cuda_.EventDestroy(event_) : 0); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  Status record(CudaStream stream) {
    return cuda_.check(cuda_.EventRecord(event_, stream), "recording the end of a call");
  }
  // Also while the thread captures a stream: what waits may be garbage that Python collects there.
  Status wait() const {
    const OutsideCaptures outside(cuda_);
    return cuda_.check(cuda_.EventSynchronize(event_), "waiting for an earlier call");
  }
  Status put_before(CudaStream stream) const {
    return cuda_.check(cuda_.StreamWaitEvent(stream, event_, 0), "ordering a call behind an earlier one");
  }
  bool is_done() const {
    const OutsideCaptures outside(cuda_);
    const int error = cuda_.EventQuery(event_);
    cuda_.ignore(error);  // "not ready" is one to CUDA
    return error == 0;
  }

 private:
  const Cuda& cuda_;
  CudaEvent event_ = nullptr;
};

// Work that may be under way: where it ends, and the stream that it is on.
struct WorkInFlight {
  std::shared_ptr<DeviceEvent> end;  // null: it is done
  StreamId stream;

  bool is_on(const StreamId& id) const { return id && id == stream; }

  // Behind its event, not its stream: that may be gone. A call that is being captured can't come behind what is not in
  // its graph, so it waits.
  Status put_before(const CallStream& call) {
    if (call.is_captured) {
      return wait();
    }
    return end && !is_on(call.id) ? end->put_before(call.handle) : Status();
  }

  // Until it is done.
  Status wait() {
    Status status = end ? end->wait() : Status();
    if (status.ok()) {
      end = nullptr;
    }
    return status;
  }

  // Whether it is known to be done. Does not wait.
  bool is_done() {
    if (end && end->is_done()) {
      end = nullptr;
    }
    return end == nullptr;
  }
};

// The last of the calls that use some memory of a device, on whatever streams. Not thread-safe: one at a time uses it.
struct StreamOrder {
  const Cuda& cuda;
  const int device;
  WorkInFlight last;
};

// CUDA's default stream or a thread's own, which wait for each other.
inline bool is_default(CudaStream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

// The id of a stream. Not for one that is being captured: asking would break the capture.
StreamId id_of(const Cuda& cuda, CudaStream stream);

}  // namespace executorch_tensorrt
