// DevicePool: blocks of device memory that come back when they are dropped, and are given out again.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device_buffer.h"

namespace executorch_tensorrt {

class DevicePool : public std::enable_shared_from_this<DevicePool> {
 public:
  DevicePool(const Cuda& cuda, int device) : cuda_(cuda), device_(device) {}
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  ~DevicePool() {
    const CudaDeviceScope scope(cuda_, device_);
    free_.clear();
  }

  int device() const { return device_; }
  const Cuda& cuda() const { return cuda_; }

  // `nbytes` of memory, which outlives the pool's other owners. Work with a block that was dropped may be under way:
  // who takes it next must be ordered behind that, as calls on one stream are.
  Result<std::shared_ptr<void>> take(std::size_t nbytes) {
    nbytes = nbytes > 0 ? nbytes : 1;
    std::unique_ptr<DeviceBuffer> buffer;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::vector<std::unique_ptr<DeviceBuffer>>& free = free_[nbytes];
      if (!free.empty()) {
        buffer = std::move(free.back());
        free.pop_back();
      }
    }
    if (!buffer) {
      buffer = std::make_unique<DeviceBuffer>(cuda_);
      const CudaDeviceScope scope(cuda_, device_);
      if (Status status = buffer->grow(nbytes, "a tensor"); !status.ok()) {
        return status;
      }
    }
    void* const data = buffer->data();
    const auto back = [pool = shared_from_this(), nbytes](DeviceBuffer* block) {
      std::unique_ptr<DeviceBuffer> owned(block);
      const std::lock_guard<std::mutex> lock(pool->mutex_);
      pool->free_[nbytes].push_back(std::move(owned));
    };
    return std::shared_ptr<void>(std::shared_ptr<DeviceBuffer>(buffer.release(), back), data);
  }

 private:
  const Cuda& cuda_;
  const int device_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::unique_ptr<DeviceBuffer>>> free_;  // by size
};

}  // namespace executorch_tensorrt
