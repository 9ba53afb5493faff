// The memory of the fake CUDA runtime. Not thread-safe.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>

namespace fake_cuda {

enum Kind { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 };

[[noreturn]] inline void die(const std::string& what) {
  std::fprintf(stderr, "fake CUDA: %s\n", what.c_str());
  std::abort();
}

struct Block {
  std::size_t nbytes;
  Kind kind;
  int device;
  bool of_host = false;  // the host allocated it, and pinned it later
};

class Memory {
 public:
  // One file mapped twice: device addresses, which fault, and the same bytes where they can be reached.
  Memory() {
    const int file = memfd_create("fake_cuda", 0);
    if (file < 0 || ftruncate(file, kCapacity) != 0) {
      die("no memory for the device");
    }
    device_ = static_cast<char*>(mmap(nullptr, kCapacity, PROT_NONE, MAP_SHARED, file, 0));
    reachable_ = static_cast<char*>(mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    if (device_ == MAP_FAILED || reachable_ == MAP_FAILED) {
      die("no memory for the device");
    }
  }

  void set_free(std::size_t nbytes) { free_ = nbytes; }

  // As much is free as there is. Addresses begin again, unless there is device memory.
  void reset() {
    free_ = kCapacity;
    const auto on_device = [](const auto& entry) { return entry.second.kind == kDevice; };
    if (std::none_of(blocks_.begin(), blocks_.end(), on_device)) {
      used_ = 0;
    }
  }

  // Null when there is no more.
  void* allocate(std::size_t nbytes, Kind kind, int device) {
    const bool on_device = kind == kDevice;
    const std::size_t room = (nbytes / kAlignment + 2) * kAlignment;  // no two blocks touch
    if (on_device && (nbytes > free_ || room > kCapacity - used_)) {
      return nullptr;
    }
    char* data = on_device ? device_ + used_ : static_cast<char*>(std::malloc(nbytes + 1));
    if (on_device) {
      used_ += room;  // an address is never used again, so that stale ones are known
      free_ -= nbytes;
    }
    blocks_[data] = {nbytes, kind, device, false};
    std::memset(at(data, nbytes), 0xCD, nbytes);
    return data;
  }

  void free(void* data) {
    const auto found = blocks_.find(static_cast<char*>(data));
    if (found == blocks_.end() || found->second.of_host) {
      die("a free of what is not allocated");
    }
    if (found->second.kind == kDevice) {
      free_ += found->second.nbytes;
    } else {
      std::free(data);
    }
    blocks_.erase(found);
  }

  // That an address lies in, or null.
  const Block* find(const void* data) const {
    const auto found = block_of(data);
    return found == blocks_.end() ? nullptr : &found->second;
  }

  // Where the bytes can be reached. Memory that CUDA does not know is where it is.
  char* at(const void* data, std::size_t nbytes) const {
    char* address = static_cast<char*>(const_cast<void*>(data));
    const auto found = block_of(data);
    if (found == blocks_.end()) {
      if (in_device(address)) {
        die("device memory that was freed, or never allocated, is used");
      }
      return address;
    }
    if (nbytes > found->second.nbytes - static_cast<std::size_t>(address - found->first)) {
      die("out of bounds: " + std::to_string(nbytes) + " bytes of a block of " + std::to_string(found->second.nbytes));
    }
    return in_device(address) ? reachable_ + (address - device_) : address;
  }

  // Memory of the host's own becomes pinned, or is so no longer. False where it is that already, or was not.
  bool pin(void* data, std::size_t nbytes) {
    char* const begin = static_cast<char*>(data);
    const auto after = blocks_.lower_bound(begin);
    if (find(data) != nullptr || (after != blocks_.end() && after->first < begin + nbytes)) {
      return false;
    }
    blocks_[begin] = {nbytes, kHost, 0, true};
    return true;
  }
  bool unpin(void* data) {
    const auto found = blocks_.find(static_cast<char*>(data));
    if (found == blocks_.end() || !found->second.of_host) {
      return false;
    }
    blocks_.erase(found);
    return true;
  }

  int num_blocks() const { return static_cast<int>(blocks_.size()); }

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 30;
  static constexpr std::size_t kAlignment = 256;
  using Blocks = std::map<char*, Block>;

  bool in_device(const char* address) const { return address >= device_ && address < device_ + kCapacity; }

  Blocks::const_iterator block_of(const void* data) const {
    char* address = static_cast<char*>(const_cast<void*>(data));
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) {
      return blocks_.end();
    }
    const auto block = std::prev(after);
    return address < block->first + block->second.nbytes ? block : blocks_.end();
  }

  char* device_;
  char* reachable_;
  std::size_t used_ = 0;
  std::size_t free_ = kCapacity;
  Blocks blocks_;
};

}  // namespace fake_cuda
