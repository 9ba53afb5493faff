// MethodArenas: the host memory that a program plans for a method, where calls of an engine may copy from and to it.
#pragma once

#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/executor/method_meta.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "device/device_memory.h"
#include "program/method_info.h"

namespace executorch_tensorrt {

// ExecuTorch copies inputs here, and callers copy outputs from here. Page-locked, no further copy is staged.
class MethodArenas {
 public:
  // Null where ExecuTorch's own memory does: no engine takes part, the memory is small, or too large to be locked, or
  // some of it lies on a device.
  static std::unique_ptr<MethodArenas> create(const executorch::runtime::MethodMeta& meta, const MethodInfo& info);

  executorch::runtime::HierarchicalAllocator* allocator() { return allocator_.get(); }

 private:
  MethodArenas() = default;

  std::vector<std::unique_ptr<HostBlock>> blocks_;
  std::vector<executorch::runtime::Span<std::uint8_t>> spans_;
  std::unique_ptr<executorch::runtime::HierarchicalAllocator> allocator_;
};

}  // namespace executorch_tensorrt
