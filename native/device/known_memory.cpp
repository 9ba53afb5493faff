#include "device/known_memory.h"

#include <map>
#include <mutex>
#include <shared_mutex>

namespace executorch_tensorrt {
namespace {

struct Block {
  std::size_t nbytes;
  int device;
};

struct Blocks {
  std::shared_mutex mutex;
  std::map<const char*, Block> by_address;
};

// Never destroyed: objects that outlive main() free memory as well.
Blocks& blocks() {
  static auto* instance = new Blocks;
  return *instance;
}

}  // namespace

void remember_device_memory(const void* data, std::size_t nbytes, int device) {
  Blocks& known = blocks();
  const std::unique_lock<std::shared_mutex> lock(known.mutex);
  known.by_address[static_cast<const char*>(data)] = {nbytes, device};
}

void forget_device_memory(const void* data) {
  Blocks& known = blocks();
  const std::unique_lock<std::shared_mutex> lock(known.mutex);
  known.by_address.erase(static_cast<const char*>(data));
}

std::optional<int> known_device_of(const void* data) {
  Blocks& known = blocks();
  const std::shared_lock<std::shared_mutex> lock(known.mutex);
  const auto after = known.by_address.upper_bound(static_cast<const char*>(data));
  if (after == known.by_address.begin()) {
    return std::nullopt;
  }
  const auto& [begin, block] = *std::prev(after);
  return static_cast<const char*>(data) < begin + block.nbytes ? std::optional(block.device) : std::nullopt;
}

}  // namespace executorch_tensorrt
