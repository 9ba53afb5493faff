// DeviceBuffer: device memory that only grows.
#pragma once

#include "device/cuda.h"
#include "device/known_memory.h"

namespace executorch_tensorrt {

class DeviceBuffer {
 public:
  explicit DeviceBuffer(const Cuda& cuda) : cuda_(&cuda) {}
  ~DeviceBuffer() { release(); }
  DeviceBuffer(DeviceBuffer&& other) noexcept : cuda_(other.cuda_), data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

  // At least `nbytes` on the current device, with other contents if it had less. Nothing may be using it then.
  Status grow(std::size_t nbytes, const std::string& what) {
    if (nbytes <= size_) {
      return {};
    }
    const OutsideCaptures outside(*cuda_);
    release();
    const int error = cuda_->Malloc(&data_, nbytes);
    if (error != 0) {
      data_ = nullptr;
      return cuda_->check(error, "allocating " + std::to_string(nbytes) + " bytes of device memory for " + what);
    }
    size_ = nbytes;
    int device = 0;
    if (const int unknown = cuda_->GetDevice(&device); unknown == 0) {
      remember_device_memory(data_, size_, device);
    } else {
      cuda_->ignore(unknown);
    }
    return {};
  }

 private:
  void release() {
    if (data_ != nullptr) {
      forget_device_memory(data_);
      cuda_->ignore(cuda_->Free(data_));
      data_ = nullptr;
      size_ = 0;
    }
  }

  const Cuda* cuda_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace executorch_tensorrt
