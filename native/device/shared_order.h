// SharedOrder: the order of calls of several engines that share memory of a device, on whatever streams.
#pragma once

#include <utility>

#include "device/device_event.h"

namespace executorch_tensorrt {

// Not thread-safe: one call at a time uses what is shared.
class SharedOrder {
 public:
  SharedOrder(const Cuda& cuda, int device) : cuda_(cuda), device_(device) {}
  SharedOrder(const SharedOrder&) = delete;
  SharedOrder& operator=(const SharedOrder&) = delete;

  const Cuda& cuda() const { return cuda_; }
  int device() const { return device_; }

  const WorkInFlight& last() const { return last_; }
  void set_last(WorkInFlight work) { last_ = std::move(work); }

  // Until no work with the memory is under way.
  Status wait() {
    if (last_.end == nullptr) {
      return {};
    }
    Status status = cuda_.check(cuda_.EventSynchronize(last_.end->get()), "waiting for a call that uses the buffer");
    if (status.ok()) {
      last_ = {};
    }
    return status;
  }

 private:
  const Cuda& cuda_;
  const int device_;
  WorkInFlight last_;
};

}  // namespace executorch_tensorrt
