// Which profile each delegate of one execution used, for callers that ask; without a collector nothing is recorded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/metadata.h"

namespace executorch_tensorrt {

struct Selection {
  std::string engine_id;  // empty for engines that Torch-TensorRT exported
  std::size_t profile = 0;
};

class SelectionCollector {
 public:
  // Collects what delegates of this thread select until it ends.
  SelectionCollector() : previous_(std::exchange(active_, this)) {}
  ~SelectionCollector() { active_ = previous_; }
  SelectionCollector(const SelectionCollector&) = delete;
  SelectionCollector& operator=(const SelectionCollector&) = delete;

  std::vector<Selection> take() { return std::move(selections_); }

  static void record(const EngineMetadata& engine, std::size_t profile) {
    if (active_ != nullptr) {
      active_->selections_.push_back({engine.record ? engine.record->engine_id : std::string(), profile});
    }
  }

 private:
  // In the shared library, once per process.
  static thread_local SelectionCollector* active_;

  SelectionCollector* previous_;
  std::vector<Selection> selections_;
};

}  // namespace executorch_tensorrt
