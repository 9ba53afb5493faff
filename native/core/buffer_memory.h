// BufferMemory: where the value of a buffer that engines own lies, on the host or on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/memory.h"
#include "core/status.h"

namespace executorch_tensorrt {

class BufferMemory {
 public:
  virtual ~BufferMemory() = default;
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;

  void* value() const { return value_; }

  // Where an engine that does not write in place puts what is the value after the call; made by make_next().
  void* next() const { return next_; }
  void advance() noexcept { std::swap(value_, next_); }
  virtual Status make_next(const std::string& name) = 0;

  // All of it; done when they return.
  virtual Status read(void* to) = 0;
  virtual Status write(const void* from) = 0;
  virtual Status clear() = 0;

 protected:
  BufferMemory() = default;
  void* value_ = nullptr;
  void* next_ = nullptr;
};

class HostMemory final : public BufferMemory {
 public:
  static Result<std::unique_ptr<BufferMemory>> create(std::size_t nbytes, const std::string& name);

  Status make_next(const std::string& name) override;
  Status read(void* to) override;
  Status write(const void* from) override;
  Status clear() override;

 private:
  static constexpr std::size_t kAlignment = 64;
  using Block = AlignedBytes<kAlignment>;

  explicit HostMemory(std::size_t nbytes) : nbytes_(nbytes) {}
  Status allocate(Block& block, const std::string& name) const;

  std::size_t nbytes_;
  Block first_;
  Block second_;
};

}  // namespace executorch_tensorrt
