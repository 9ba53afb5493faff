// Memory that this library allocates on a device, or pins on the host: blocks that grow, blocks that are given out
// again, and where an address lies, so that nobody has to ask CUDA for it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/internal.h"
#include "device/cuda.h"
#include "device/stream_order.h"

namespace executorch_tensorrt {

struct MemoryPlace {
  CudaMemoryType type = kUnregistered;
  int device = 0;  // of memory on a device

  bool is_on_device() const { return type == kDevice || type == kManaged; }
};

// So that place_of() knows it, wherever in it the address points.
void remember_memory(const void* data, std::size_t nbytes, MemoryPlace place);
void forget_memory(const void* data);  // before it is freed

// Of any memory. Page-locks a HostBlock.
Result<MemoryPlace> place_of(const Cuda& cuda, const void* data);

// One block that only grows: on the device that is current, or pinned on the host.
class GrowingBlock {
 public:
  GrowingBlock(const Cuda& cuda, CudaMemoryType type) : cuda_(&cuda), type_(type) {}
  ~GrowingBlock() { release(); }
  GrowingBlock(GrowingBlock&& other) noexcept;
  GrowingBlock& operator=(GrowingBlock&&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

  // At least `nbytes`, with other contents if it had less. Nothing may be using it then. What fails is told of `what`
  // and the quoted name.
  Status grow(std::size_t nbytes, const char* what, const std::string& name = {});

 private:
  void release();

  const Cuda* cuda_;
  CudaMemoryType type_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

struct DeviceBuffer : GrowingBlock {
  explicit DeviceBuffer(const Cuda& cuda) : GrowingBlock(cuda, kDevice) {}
};
// Up to here a value gets from and to memory that is not pinned sooner through some that is. (H200: 124 in place of
// 143 us for 512 KB each way; no difference at 4 MB.)
constexpr std::size_t kMostPinned = 1u << 20;

struct PinnedBuffer : GrowingBlock {
  explicit PinnedBuffer(const Cuda& cuda) : GrowingBlock(cuda, kHost) {}
};

// Zeros on the host, in pages of their own. The first call that copies from or to them on a device page-locks them:
// copies take a third of the time then. Calls that do so are over before this ends.
class HostBlock {
 public:
  explicit HostBlock(std::size_t nbytes);  // std::bad_alloc
  ETRT_INTERNAL ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void* data_;
  std::size_t size_;
};

// Blocks of device memory that come back when they are dropped, and are given out again to calls on the same stream:
// what its owner queued there with a block comes before what a later call writes to it.
class DevicePool : public std::enable_shared_from_this<DevicePool> {
 public:
  class Block {
   public:
    void* data() const { return buffer_->data(); }

    // Work that reads it on whatever stream: the call that gets it next comes behind that as well.
    void add_reader(const WorkInFlight& work);

    // Somebody else's work on `stream` uses it. Of another stream than the block's nobody knows when that is done, so
    // it is not given out again before the device has nothing to do.
    ETRT_INTERNAL void used_on(CudaStream stream);

   private:
    friend class DevicePool;
    explicit Block(const Cuda& cuda) : cuda_(cuda) {}

    const Cuda& cuda_;
    std::unique_ptr<DeviceBuffer> buffer_;
    std::size_t nbytes_ = 0;
    CallStream stream_;  // of the call that it was given to
    std::vector<WorkInFlight> readers_;
    bool is_used_elsewhere_ = false;
  };

  DevicePool(const Cuda& cuda, int device) : cuda_(cuda), device_(device) {}
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  ~DevicePool();

  // `nbytes` of memory for a call on `stream`, which outlives the pool's other owners.
  Result<std::shared_ptr<Block>> take(std::size_t nbytes, const CallStream& stream);

 private:
  // Blocks of other streams that lie idle: more of one size than that are not worth the memory.
  static constexpr std::size_t kMostIdle = 8;

  std::unique_ptr<Block> find(std::size_t nbytes, const CallStream& stream);
  Result<std::unique_ptr<Block>> make(std::size_t nbytes);
  void put_back(std::unique_ptr<Block> block);

  const Cuda& cuda_;
  const int device_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::unique_ptr<Block>>> free_;  // by size, the newest last
};

}  // namespace executorch_tensorrt
