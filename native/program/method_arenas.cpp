#include "program/method_arenas.h"

#include <algorithm>
#include <new>

#include "delegate/backend.h"

namespace executorch_tensorrt {
namespace {

// Less takes CUDA no longer unlocked; more is not to be taken from the machine's other processes.
constexpr std::size_t kLeast = 64u << 10;
constexpr std::size_t kMost = 64u << 20;

}  // namespace

std::unique_ptr<MethodArenas> MethodArenas::create(const executorch::runtime::MethodMeta& meta,
                                                   const MethodInfo& info) {
  std::vector<std::size_t> sizes;
  std::size_t total = 0;
  for (std::size_t id = 0; id < meta.num_memory_planned_buffers(); ++id) {
    const auto size = meta.memory_planned_buffer_size(id);
    const auto device = meta.memory_planned_buffer_device(id);
    if (!size.ok() || *size < 0 || static_cast<std::size_t>(*size) > kMost || !device.ok() || !device->is_cpu()) {
      return nullptr;
    }
    sizes.push_back(static_cast<std::size_t>(*size));
    total += sizes.back();
  }
  if (total < kLeast || total > kMost ||
      std::find(info.backends.begin(), info.backends.end(), kBackendId) == info.backends.end()) {
    return nullptr;
  }
  std::unique_ptr<MethodArenas> arenas(new MethodArenas);
  try {
    for (const std::size_t size : sizes) {
      arenas->blocks_.push_back(std::make_unique<HostBlock>(std::max<std::size_t>(size, 1)));
      arenas->spans_.emplace_back(static_cast<std::uint8_t*>(arenas->blocks_.back()->data()), size);
    }
  } catch (const std::bad_alloc&) {
    return nullptr;  // ExecuTorch says that there is no memory
  }
  using executorch::runtime::HierarchicalAllocator;
  arenas->allocator_ = std::make_unique<HierarchicalAllocator>(
      executorch::runtime::Span<executorch::runtime::Span<std::uint8_t>>(arenas->spans_.data(), arenas->spans_.size()));
  return arenas;
}

}  // namespace executorch_tensorrt
