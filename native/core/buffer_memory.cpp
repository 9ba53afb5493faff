#include "core/buffer_memory.h"

#include <algorithm>
#include <cstring>

namespace executorch_tensorrt {

Result<std::unique_ptr<BufferMemory>> HostMemory::create(std::size_t nbytes, const std::string& name) {
  std::unique_ptr<HostMemory> memory(new HostMemory(nbytes));
  if (Status status = memory->allocate(memory->first_, name); !status.ok()) {
    return status;
  }
  memory->value_ = memory->first_.get();
  return std::unique_ptr<BufferMemory>(std::move(memory));
}

Status HostMemory::allocate(Block& block, const std::string& name) const {
  block = aligned_bytes<kAlignment>(nbytes_);
  if (!block) {
    return {StatusCode::kOutOfMemory, "no memory for buffer '" + name + "' of " + std::to_string(nbytes_) + " bytes"};
  }
  return {};
}

Status HostMemory::make_next(const std::string& name) {
  if (next_ != nullptr) {
    return {};
  }
  Status status = allocate(second_, name);
  next_ = second_.get();
  return status;
}

Status HostMemory::read(void* to) {
  std::copy_n(static_cast<const char*>(value_), nbytes_, static_cast<char*>(to));
  return {};
}

Status HostMemory::write(const void* from) {
  std::copy_n(static_cast<const char*>(from), nbytes_, static_cast<char*>(value_));
  return {};
}

Status HostMemory::clear() {
  std::memset(value_, 0, nbytes_);
  return {};
}

}  // namespace executorch_tensorrt
