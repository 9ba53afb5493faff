// EventScope: one named delegate event, closed on every path.
#pragma once

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>

#include <string>
#include <utility>

namespace executorch_tensorrt {

class EventScope {
 public:
  // Does nothing when `tracer` is null.
  EventScope(executorch::runtime::EventTracer* tracer, const char* name) : tracer_(tracer) {
    if (tracer_ != nullptr) {
      // A name goes with the id -1; ETDump aborts the process for any other pair.
      entry_ = executorch::runtime::event_tracer_start_profiling_delegate(
          tracer_, name, executorch::runtime::kUnsetDelegateDebugIntId);
    }
  }

  ~EventScope() {
    if (tracer_ != nullptr) {
      executorch::runtime::event_tracer_end_profiling_delegate(
          tracer_, entry_, metadata_.empty() ? nullptr : metadata_.data(), metadata_.size());
    }
  }

  EventScope(const EventScope&) = delete;
  EventScope& operator=(const EventScope&) = delete;

  bool active() const { return tracer_ != nullptr; }
  void set_metadata(std::string metadata) { metadata_ = std::move(metadata); }

 private:
  executorch::runtime::EventTracer* tracer_;
  executorch::runtime::EventTracerEntry entry_{};
  std::string metadata_;
};

}  // namespace executorch_tensorrt
