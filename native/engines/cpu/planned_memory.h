// The activation memory of an engine: one arena per memory id, as large as the largest method needs, shared by the
// contexts of all profiles. The contexts run one at a time and keep nothing there between calls.
#pragma once

#include <executorch/runtime/executor/method_meta.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/memory.h"
#include "core/status.h"

namespace executorch_tensorrt {

class PlannedMemory {
 public:
  // Grows the arenas to what the method needs. Not after the first arenas().
  Status reserve(const executorch::runtime::MethodMeta& meta) {
    for (std::size_t id = 0; id < meta.num_memory_planned_buffers(); ++id) {
      const auto size = meta.memory_planned_buffer_size(id);
      if (!size.ok() || *size < 0) {
        return invalid_program("the engine's memory plan is damaged");
      }
      if (sizes_.size() <= id) {
        sizes_.resize(id + 1);
      }
      sizes_[id] = std::max(sizes_[id], static_cast<std::size_t>(*size));
    }
    return {};
  }

  // Allocates on first use; kOutOfMemory when that fails.
  Status allocate() {
    arenas_.reserve(sizes_.size());
    spans_.reserve(sizes_.size());  // nothing below throws, so that both stay of one length
    for (std::size_t id = arenas_.size(); id < sizes_.size(); ++id) {
      AlignedBytes<kAlignment> arena = aligned_bytes<kAlignment>(sizes_[id]);
      if (!arena) {
        return {StatusCode::kOutOfMemory, "no memory for activations of " + std::to_string(sizes_[id]) + " bytes"};
      }
      arenas_.push_back(std::move(arena));
      spans_.push_back({arenas_.back().get(), sizes_[id]});
    }
    return {};
  }

  executorch::runtime::Span<executorch::runtime::Span<std::uint8_t>> arenas() { return {spans_.data(), spans_.size()}; }

 private:
  static constexpr std::size_t kAlignment = 64;  // a cache line; ExecuTorch asks for 16

  std::vector<std::size_t> sizes_;
  std::vector<AlignedBytes<kAlignment>> arenas_;
  std::vector<executorch::runtime::Span<std::uint8_t>> spans_;
};

}  // namespace executorch_tensorrt
