// A CUDA device made of host memory: what ExecuTorch needs to plan a program's memory on "cuda:0". It knows which
// addresses are its own, and counts the copies. It copies at once, so it shows nothing of what is asynchronous on a
// real one.
#pragma once

#include <executorch/runtime/core/device_allocator.h>

#include <cstdlib>
#include <cstring>
#include <map>

namespace executorch_tensorrt::testing {

class FakeDevice final : public executorch::runtime::DeviceAllocator {
 public:
  using Error = executorch::runtime::Error;
  using Index = executorch::runtime::etensor::DeviceIndex;

  // ExecuTorch takes one allocator per process and no way back.
  static FakeDevice& instance() {
    static FakeDevice* device = [] {
      auto* created = new FakeDevice;
      executorch::runtime::register_device_allocator(created);
      return created;
    }();
    return *device;
  }

  bool owns(const void* address) const {
    const auto after = blocks_.upper_bound(static_cast<const char*>(address));
    return after != blocks_.begin() && address < std::prev(after)->first + std::prev(after)->second;
  }

  int to_device = 0;
  int to_host = 0;

  executorch::runtime::Result<void*> allocate(std::size_t nbytes, Index, std::size_t) override {
    void* block = std::malloc(nbytes);
    if (block == nullptr) {
      return Error::MemoryAllocationFailed;
    }
    blocks_[static_cast<char*>(block)] = nbytes;
    return block;
  }
  void deallocate(void* block, Index) override {
    blocks_.erase(static_cast<char*>(block));
    std::free(block);
  }
  Error copy_host_to_device(void* to, const void* from, std::size_t nbytes, Index) override {
    ++to_device;
    std::memcpy(to, from, nbytes);
    return owns(to) && !owns(from) ? Error::Ok : Error::InvalidArgument;
  }
  Error copy_device_to_host(void* to, const void* from, std::size_t nbytes, Index) override {
    ++to_host;
    std::memcpy(to, from, nbytes);
    return owns(from) && !owns(to) ? Error::Ok : Error::InvalidArgument;
  }
  executorch::runtime::etensor::DeviceType device_type() const override {
    return executorch::runtime::etensor::DeviceType::CUDA;
  }

 private:
  std::map<const char*, std::size_t> blocks_;
};

}  // namespace executorch_tensorrt::testing
