#include "program/device_allocator.h"

#include <executorch/runtime/core/device_allocator.h>

#include "device/caller_stream.h"
#include "device/cuda.h"
#include "device/device_memory.h"
#include "process/failure.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;
using executorch::runtime::etensor::DeviceIndex;
using executorch::runtime::etensor::DeviceType;

Error report(const Status& status) {
  return status.ok() ? Error::Ok : report_failure("memory on a CUDA device", status);
}

// `use` returns a Status.
template <typename Use>
Error on_device(DeviceIndex index, Use&& use) {
  const Result<const Cuda*> cuda = Cuda::get();
  if (!cuda.ok()) {
    return report(cuda.status());
  }
  const CudaDeviceScope scope(**cuda, index);
  return report(scope.status().ok() ? use(**cuda) : scope.status());
}

class CudaAllocator final : public executorch::runtime::DeviceAllocator {
 public:
  // CUDA aligns to 256 bytes.
  executorch::runtime::Result<void*> allocate(std::size_t nbytes, DeviceIndex index, std::size_t) override {
    void* data = nullptr;
    const Error error = on_device(index, [&](const Cuda& cuda) {
      return cuda.check(cuda.Malloc(&data, nbytes > 0 ? nbytes : 1), "allocating a program's device memory");
    });
    if (error != Error::Ok) {
      return error;
    }
    remember_memory(data, nbytes, {kDevice, index});
    return data;
  }
  void deallocate(void* data, DeviceIndex index) override {
    forget_memory(data);
    on_device(index, [&](const Cuda& cuda) {
      const OutsideCaptures outside(cuda);  // Python may collect a module while a graph is recorded
      return cuda.check(cuda.Free(data), "freeing a program's device memory");
    });
  }
  Error copy_host_to_device(void* to, const void* from, std::size_t nbytes, DeviceIndex index) override {
    return on_device(index, [&](const Cuda& cuda) {
      return copy_behind_calls(cuda, to, from, nbytes, kHostToDevice, "copying to the device");
    });
  }
  Error copy_device_to_host(void* to, const void* from, std::size_t nbytes, DeviceIndex index) override {
    return on_device(index, [&](const Cuda& cuda) {
      return copy_behind_calls(cuda, to, from, nbytes, kDeviceToHost, "copying from the device");
    });
  }
  DeviceType device_type() const override { return DeviceType::CUDA; }
};

// ExecuTorch refuses to load programs with device memory, such as Torch-TensorRT's, unless somebody allocates it. It
// takes one allocator per process, and ends the process for a second.
const bool is_ours = [] {
  if (executorch::runtime::get_device_allocator(DeviceType::CUDA) != nullptr) {
    return false;
  }
  static CudaAllocator allocator;
  executorch::runtime::register_device_allocator(&allocator);
  return true;
}();

}  // namespace

Status device_memory_status() {
  if (!is_ours) {
    return {};
  }
  const Result<const Cuda*> cuda = Cuda::get();
  return cuda.ok() ? Status() : cuda.status();
}

}  // namespace executorch_tensorrt
