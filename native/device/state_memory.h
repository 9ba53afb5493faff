// DeviceStateMemory: the memory of a buffer that engines own on a device.
#pragma once

#include <memory>
#include <string>

#include "core/buffer_memory.h"
#include "device/device_memory.h"
#include "device/stream_order.h"

namespace executorch_tensorrt {

class DeviceStateMemory final : public BufferMemory {
 public:
  // `order`: that of the calls that use it. What it does itself waits for them, and is done before the next.
  static Result<std::unique_ptr<BufferMemory>> create(std::shared_ptr<StreamOrder> order, std::size_t nbytes,
                                                      const std::string& name);
  ~DeviceStateMemory() override;

  Status make_next(const std::string& name) override;
  Status read(void* to) override;
  Status write(const void* from) override;
  Status clear() override;

 private:
  DeviceStateMemory(std::shared_ptr<StreamOrder> order, std::size_t nbytes);
  Status allocate(std::unique_ptr<DeviceBuffer>& block, const std::string& name);
  template <typename Queue>
  Status alone(const char* what, Queue&& queue);

  const std::shared_ptr<StreamOrder> order_;
  const Cuda& cuda_;
  const std::size_t nbytes_;
  std::unique_ptr<DeviceBuffer> first_;
  std::unique_ptr<DeviceBuffer> second_;
};

}  // namespace executorch_tensorrt
