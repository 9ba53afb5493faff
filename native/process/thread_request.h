// What the calling thread asks of the engines that it runs, and what they answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/internal.h"
#include "core/metadata.h"
#include "core/selection.h"

namespace executorch_tensorrt {

// The thread's request, which OptimizationProfileGuard sets.
ETRT_INTERNAL Request current_request();

// The profile that one delegate used in one execution.
struct Selection {
  std::string engine_id;  // empty for engines that Torch-TensorRT exported
  std::size_t profile = 0;
};

// Collects what delegates of this thread select until it ends. Without one nothing is recorded.
class SelectionCollector {
 public:
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
  ETRT_INTERNAL static thread_local SelectionCollector* active_;

  SelectionCollector* previous_;
  std::vector<Selection> selections_;
};

}  // namespace executorch_tensorrt
