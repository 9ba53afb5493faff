// DeviceEvent: an event that lives as long as anybody may wait for it.
#pragma once

#include <memory>
#include <optional>

#include "device/cuda.h"

namespace executorch_tensorrt {

class DeviceEvent {
 public:
  explicit DeviceEvent(const Cuda& cuda) : cuda_(cuda) {}
  ~DeviceEvent() {
    if (event_ != nullptr) {
      cuda_.ignore(cuda_.EventDestroy(event_));
    }
  }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // Makes it on the current device; CUDA's error.
  int create(unsigned flags) { return cuda_.EventCreateWithFlags(&event_, flags); }

  CudaEvent get() const { return event_; }

 private:
  const Cuda& cuda_;
  CudaEvent event_ = nullptr;
};

// Work that may be under way: where it ends, and the stream that it is on, where CUDA tells streams apart.
struct WorkInFlight {
  std::shared_ptr<DeviceEvent> end;  // null: it is done
  std::optional<unsigned long long> stream_id;

  bool is_on(const std::optional<unsigned long long>& id) const { return id && id == stream_id; }
};

}  // namespace executorch_tensorrt
