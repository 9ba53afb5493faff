#include "device/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <shared_mutex>
#include <utility>

namespace executorch_tensorrt {
namespace {

constexpr int kErrorInvalidValue = 1;
constexpr unsigned kForAllDevices = 1;

struct Known {
  std::size_t nbytes;
  MemoryPlace place;
  bool may_be_locked = false;  // it is a HostBlock that nobody tried to page-lock
  const Cuda* cuda = nullptr;  // that has page-locked it
};

struct Registry {
  std::shared_mutex mutex;
  std::map<const char*, Known> by_address;
};

// Never destroyed: objects that outlive main() free memory as well.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// The registry is locked.
const Known* find(const void* data) {
  const auto& known = registry().by_address;
  const auto after = known.upper_bound(static_cast<const char*>(data));
  if (after == known.begin()) {
    return nullptr;
  }
  const auto& [begin, block] = *std::prev(after);
  return static_cast<const char*>(data) < begin + block.nbytes ? &block : nullptr;
}

// Where CUDA does not lock it, it stays as it is. CUDA is asked without the registry's lock, for which a thread may
// wait with the GIL; the block stays where it is, since a call uses it.
MemoryPlace lock_pages(const Cuda& cuda, const void* data) {
  std::unique_lock<std::shared_mutex> lock(registry().mutex);
  auto& [begin, block] = *std::prev(registry().by_address.upper_bound(static_cast<const char*>(data)));
  if (!std::exchange(block.may_be_locked, false)) {
    return block.place;
  }
  lock.unlock();
  MemoryPlace place;
  {
    const OutsideCaptures outside(cuda);
    const int error = cuda.HostRegister(const_cast<char*>(begin), block.nbytes, kForAllDevices);
    cuda.ignore(error);
    if (error != 0) {
      return place;
    }
    cuda.ignore(cuda.GetDevice(&place.device));
  }
  lock.lock();
  place.type = kHost;
  block.place = place;
  block.cuda = &cuda;
  return place;
}

}  // namespace

void remember_memory(const void* data, std::size_t nbytes, MemoryPlace place) {
  Registry& known = registry();
  const std::unique_lock<std::shared_mutex> lock(known.mutex);
  known.by_address[static_cast<const char*>(data)] = {nbytes, place};
}

void forget_memory(const void* data) {
  Registry& known = registry();
  const std::unique_lock<std::shared_mutex> lock(known.mutex);
  known.by_address.erase(static_cast<const char*>(data));
}

Result<MemoryPlace> place_of(const Cuda& cuda, const void* data) {
  std::shared_lock<std::shared_mutex> lock(registry().mutex);
  if (const Known* known = find(data); known != nullptr && !known->may_be_locked) {
    return known->place;
  } else if (known != nullptr) {
    lock.unlock();
    return lock_pages(cuda, data);
  }
  lock.unlock();
  CudaPointerAttributes attributes;
  const int error = cuda.PointerGetAttributes(&attributes, data);
  if (error == kErrorInvalidValue) {
    cuda.ignore(error);  // as CUDA 10 has it for memory from malloc()
    return MemoryPlace{};
  }
  if (error != 0) {
    return cuda.failure(error, "asking where memory lies");
  }
  return MemoryPlace{static_cast<CudaMemoryType>(attributes.type), attributes.device};
}

GrowingBlock::GrowingBlock(GrowingBlock&& other) noexcept
    : cuda_(other.cuda_),
      type_(other.type_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Status GrowingBlock::grow(std::size_t nbytes, const char* what, const std::string& name) {
  if (nbytes <= size_) {
    return {};
  }
  release();
  const OutsideCaptures outside(*cuda_);
  MemoryPlace place{type_, 0};
  int error = type_ == kDevice ? cuda_->Malloc(&data_, nbytes) : cuda_->MallocHost(&data_, nbytes);
  if (error != 0) {
    data_ = nullptr;
    const char* const of = type_ == kDevice ? " bytes of device memory for " : " bytes of pinned memory for ";
    return cuda_->failure(error,
                          "allocating " + std::to_string(nbytes) + of + what + (name.empty() ? "" : "'" + name + "'"));
  }
  size_ = nbytes;
  error = type_ == kDevice ? cuda_->GetDevice(&place.device) : 0;
  if (error == 0) {
    remember_memory(data_, size_, place);
  }
  cuda_->ignore(error);
  return {};
}

void GrowingBlock::release() {
  if (data_ == nullptr) {
    return;
  }
  // Python may collect what has it while a graph is recorded.
  const OutsideCaptures outside(*cuda_);
  forget_memory(data_);
  cuda_->ignore(type_ == kDevice ? cuda_->Free(data_) : cuda_->FreeHost(data_));
  data_ = nullptr;
  size_ = 0;
}

HostBlock::HostBlock(std::size_t nbytes)
    : data_(mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), size_(nbytes) {
  if (data_ == MAP_FAILED) {
    throw std::bad_alloc();
  }
  Registry& known = registry();
  const std::unique_lock<std::shared_mutex> lock(known.mutex);
  known.by_address[static_cast<const char*>(data_)] = {size_, {}, true};
}

HostBlock::~HostBlock() {
  Known block;
  {
    Registry& known = registry();
    const std::unique_lock<std::shared_mutex> lock(known.mutex);
    const auto found = known.by_address.find(static_cast<const char*>(data_));
    block = found->second;
    known.by_address.erase(found);
  }
  if (block.cuda != nullptr) {
    const CudaDeviceScope scope(*block.cuda, block.place.device);
    const OutsideCaptures outside(*block.cuda);
    block.cuda->ignore(block.cuda->HostUnregister(data_));
  }
  munmap(data_, size_);
}

DevicePool::~DevicePool() {
  const CudaDeviceScope scope(cuda_, device_);
  for (auto& [nbytes, blocks] : free_) {
    for (const std::unique_ptr<Block>& block : blocks) {
      for (WorkInFlight& reader : block->readers_) {
        (void)reader.wait();
      }
    }
  }
  free_.clear();
}

void DevicePool::Block::add_reader(const WorkInFlight& work) {
  readers_.erase(
      std::remove_if(readers_.begin(), readers_.end(), [](WorkInFlight& reader) { return reader.is_done(); }),
      readers_.end());
  readers_.push_back(work);
}

void DevicePool::Block::used_on(CudaStream stream) {
  const StreamId id = id_of(cuda_, stream);
  const bool is_own = stream_.is_named ? (id ? id == stream_.id : stream == stream_.handle) : is_default(stream);
  is_used_elsewhere_ = is_used_elsewhere_ || !is_own;
}

// One of the stream; else, where many lie idle, the one that was dropped first.
std::unique_ptr<DevicePool::Block> DevicePool::find(std::size_t nbytes, const CallStream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::unique_ptr<Block>>& blocks = free_[nbytes];
  const auto of_stream =
      std::find_if(blocks.rbegin(), blocks.rend(), [&](const auto& block) { return block->stream_.is_same(stream); });
  if (of_stream == blocks.rend() && blocks.size() < kMostIdle) {
    return nullptr;
  }
  const auto taken = of_stream != blocks.rend() ? std::prev(of_stream.base()) : blocks.begin();
  std::unique_ptr<Block> block = std::move(*taken);
  blocks.erase(taken);
  return block;
}

Result<std::unique_ptr<DevicePool::Block>> DevicePool::make(std::size_t nbytes) {
  std::unique_ptr<Block> block(new Block(cuda_));
  block->buffer_ = std::make_unique<DeviceBuffer>(cuda_);
  block->nbytes_ = nbytes;
  if (Status status = block->buffer_->grow(nbytes, "a tensor"); !status.ok()) {
    return status;
  }
  return block;
}

Result<std::shared_ptr<DevicePool::Block>> DevicePool::take(std::size_t nbytes, const CallStream& stream) {
  nbytes = std::max<std::size_t>(nbytes, 1);
  const CudaDeviceScope scope(cuda_, device_);
  std::unique_ptr<Block> block = find(nbytes, stream);
  if (!block) {
    auto made = make(nbytes);
    if (!made.ok()) {
      return made.status();
    }
    block = std::move(*made);
  } else if (!block->stream_.is_same(stream)) {
    const OutsideCaptures outside(cuda_);
    if (Status status = cuda_.check(cuda_.DeviceSynchronize(), "waiting for a stream's memory"); !status.ok()) {
      return status;
    }
    block->readers_.clear();
  }
  for (WorkInFlight& reader : block->readers_) {
    if (Status status = reader.put_before(stream); !status.ok()) {
      return status;
    }
  }
  block->readers_.clear();
  block->stream_ = stream;
  const auto back = [pool = shared_from_this()](Block* dropped) { pool->put_back(std::unique_ptr<Block>(dropped)); };
  return std::shared_ptr<Block>(block.release(), back);
}

void DevicePool::put_back(std::unique_ptr<Block> block) {
  if (std::exchange(block->is_used_elsewhere_, false)) {
    const CudaDeviceScope scope(cuda_, device_);
    const OutsideCaptures outside(cuda_);
    cuda_.ignore(cuda_.DeviceSynchronize());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::unique_ptr<Block>>& blocks = free_[block->nbytes_];
  blocks.push_back(std::move(block));
}

}  // namespace executorch_tensorrt
