#include "device/state_memory.h"

#include <algorithm>
#include <utility>

namespace executorch_tensorrt {

DeviceStateMemory::DeviceStateMemory(std::shared_ptr<StreamOrder> order, std::size_t nbytes)
    : order_(std::move(order)), cuda_(order_->cuda), nbytes_(nbytes) {}

Result<std::unique_ptr<BufferMemory>> DeviceStateMemory::create(std::shared_ptr<StreamOrder> order, std::size_t nbytes,
                                                                const std::string& name) {
  std::unique_ptr<DeviceStateMemory> memory(new DeviceStateMemory(std::move(order), nbytes));
  if (Status status = memory->allocate(memory->first_, name); !status.ok()) {
    return status;
  }
  memory->value_ = memory->first_->data();
  return std::unique_ptr<BufferMemory>(std::move(memory));
}

DeviceStateMemory::~DeviceStateMemory() {
  const CudaDeviceScope scope(cuda_, order_->device);
  (void)order_->last.wait();  // after a fault there is no work to wait for
  first_.reset();
  second_.reset();
}

Status DeviceStateMemory::allocate(std::unique_ptr<DeviceBuffer>& block, const std::string& name) {
  const CudaDeviceScope scope(cuda_, order_->device);
  if (!scope.status().ok()) {
    return scope.status();
  }
  auto made = std::make_unique<DeviceBuffer>(cuda_);
  if (Status status = made->grow(std::max<std::size_t>(nbytes_, 1), "buffer ", name); !status.ok()) {
    return status;
  }
  block = std::move(made);
  return {};
}

Status DeviceStateMemory::make_next(const std::string& name) {
  if (next_ != nullptr) {
    return {};
  }
  if (Status status = allocate(second_, name); !status.ok()) {
    return status;
  }
  next_ = second_->data();
  return {};
}

// On this thread's own stream, which nobody captures, between the calls that use the buffer.
template <typename Queue>
Status DeviceStateMemory::alone(const char* what, Queue&& queue) {
  const CudaDeviceScope scope(cuda_, order_->device);
  if (!scope.status().ok()) {
    return scope.status();
  }
  if (Status status = order_->last.wait(); !status.ok() || nbytes_ == 0) {
    return status;
  }
  const CudaStream stream = per_thread_stream();
  const int error = queue(stream);
  const int synchronized = cuda_.StreamSynchronize(stream);  // also where it failed: nobody knows how far it came
  return cuda_.check(error != 0 ? error : synchronized, what);
}

Status DeviceStateMemory::read(void* to) {
  return alone("reading a buffer",
               [&](CudaStream stream) { return cuda_.MemcpyAsync(to, value_, nbytes_, kDeviceToHost, stream); });
}

Status DeviceStateMemory::write(const void* from) {
  return alone("writing a buffer",
               [&](CudaStream stream) { return cuda_.MemcpyAsync(value_, from, nbytes_, kHostToDevice, stream); });
}

Status DeviceStateMemory::clear() {
  return alone("clearing a buffer", [&](CudaStream stream) { return cuda_.MemsetAsync(value_, 0, nbytes_, stream); });
}

}  // namespace executorch_tensorrt
