// DeviceClock: how long a device worked on what was put on a stream from a moment on. Errors only lose a duration.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "device/cuda.h"

namespace executorch_tensorrt {

class DeviceClock {
 public:
  explicit DeviceClock(const Cuda& cuda) : cuda_(cuda) {}
  ~DeviceClock() {
    if (start_ != nullptr) {
      cuda_.ignore(cuda_.EventDestroy(start_));
    }
  }
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  void start(CudaStream stream) {
    started_ =
        (start_ != nullptr || cuda_.EventCreateWithFlags(&start_, 0) == 0) && cuda_.EventRecord(start_, stream) == 0;
    if (!started_) {
      cuda_.GetLastError();
    }
  }

  // Until `end`, an event on the same stream; once. Nothing when its work is not done.
  std::optional<std::uint64_t> take_ns(CudaEvent end) {
    float ms = 0;
    if (!std::exchange(started_, false)) {
      return std::nullopt;
    }
    if (cuda_.EventElapsedTime(&ms, start_, end) != 0) {
      cuda_.GetLastError();
      return std::nullopt;
    }
    return static_cast<std::uint64_t>(static_cast<double>(ms) * 1e6);
  }

 private:
  const Cuda& cuda_;
  CudaEvent start_ = nullptr;
  bool started_ = false;
};

}  // namespace executorch_tensorrt
