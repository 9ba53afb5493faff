// MethodMemory: what ExecuTorch allocates while it loads methods, by method.
#pragma once

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>

#include <cstddef>
#include <map>
#include <string>

namespace executorch_tensorrt {

// Module's own allocator frees nothing before the module ends: a method that is loaded again and again would fill
// memory. Nothing is allocated here but while a method loads.
class MethodMemory final : public executorch::runtime::MemoryAllocator {
 public:
  MethodMemory() : MemoryAllocator(0, nullptr) {}

  void* allocate(std::size_t size, std::size_t alignment = kDefaultAlignment) override {
    return loading_ != nullptr ? loading_->allocate(size, alignment) : nullptr;
  }

  // Before a method loads: what follows is its.
  void begin(const std::string& method) { loading_ = &methods_[method]; }

  // Once a method is gone, or did not load.
  void free(const std::string& method) {
    loading_ = nullptr;
    methods_.erase(method);
  }

 private:
  std::map<std::string, executorch::extension::MallocMemoryAllocator> methods_;
  executorch::extension::MallocMemoryAllocator* loading_ = nullptr;
};

}  // namespace executorch_tensorrt
