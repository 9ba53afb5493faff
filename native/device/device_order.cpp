// DeviceIo: the stream of a call, and its order behind others.
#include <utility>

#include "device/caller_stream.h"
#include "device/device_io.h"

namespace executorch_tensorrt {
namespace {

constexpr int kCaptureInvalidated = 2;

}  // namespace

Status DeviceIo::wait() {
  if (in_flight_.end == nullptr) {
    return {};
  }
  Status status = cuda_.check(cuda_.EventSynchronize(in_flight_.end->get()), "waiting for an earlier call");
  if (status.ok()) {
    in_flight_.end = nullptr;
  }
  return status;
}

Status DeviceIo::take_stream() {
  const std::optional<CudaStream> named = caller_stream();
  named_ = named.has_value();
  stream_ = named.value_or(per_thread_stream());
  int capturing = 0;
  if (named_) {
    const int error = cuda_.StreamIsCapturing(stream_, &capturing);
    if (Status status = cuda_.check(error, "using the stream that the caller named"); !status.ok()) {
      return status;
    }
  }
  if (capturing == kCaptureInvalidated) {
    return invalid_argument(
        "the caller's stream is being captured into a CUDA graph, which has failed: got a call of an engine, allowed "
        "none; end the capture before the call");
  }
  captured_ = capturing != 0;
  stream_id_ = captured_ ? std::nullopt : stream_id(named);  // asking for it would break the capture
  return {};
}

Status DeviceIo::begin() {
  queued_ = staged_ = end_recorded_ = false;
  staged_bytes_ = 0;
  copies_.clear();
  if (captured_) {
    const OutsideCaptures outside(cuda_);
    Status status = wait();
    return status.ok() && shared_ ? shared_->wait() : status;
  }
  if (Status status = order_behind(in_flight_); !status.ok()) {
    return status;
  }
  // What was this engine's own is in order by now.
  return shared_ && shared_->last().end != end_event_ ? order_behind(shared_->last()) : Status();
}

// Behind its event, not its stream: that may be gone.
Status DeviceIo::order_behind(const WorkInFlight& work) {
  if (work.end == nullptr || work.is_on(stream_id_)) {
    return {};
  }
  return cuda_.check(cuda_.StreamWaitEvent(stream_, work.end->get(), 0), "ordering a call behind an earlier one");
}

// What tells streams apart. The handle does not: it may stand for another stream by now, that of another thread, or one
// made after it.
std::optional<unsigned long long> DeviceIo::stream_id(const std::optional<CudaStream>& named) const {
  unsigned long long id = 0;
  if (!named || cuda_.StreamGetId == nullptr) {
    return std::nullopt;
  }
  if (cuda_.StreamGetId(*named, &id) != 0) {
    cuda_.GetLastError();
    return std::nullopt;
  }
  return id;
}

bool DeviceIo::is_on_last_stream() const { return in_flight_.is_on(stream_id(caller_stream())); }

void DeviceIo::record_end() {
  if (timed_event_ == nullptr) {
    auto made = std::make_shared<DeviceEvent>(cuda_);
    if (made->create(0) == 0) {
      timed_event_ = std::move(made);
    }
  }
  end_recorded_ = timed_event_ != nullptr && cuda_.EventRecord(timed_event_->get(), stream_) == 0;
  if (end_recorded_) {
    end_event_ = timed_event_;
  } else {
    cuda_.GetLastError();  // only the time is lost
  }
}

bool DeviceIo::is_done() {
  if (in_flight_.end != nullptr) {
    const int error = cuda_.EventQuery(in_flight_.end->get());
    cuda_.ignore(error);  // "not ready" is one to CUDA
    if (error == 0) {
      in_flight_.end = nullptr;
    }
  }
  return in_flight_.end == nullptr;
}

}  // namespace executorch_tensorrt
