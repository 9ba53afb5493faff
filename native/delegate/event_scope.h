// EventScope: one named event of a delegate call, closed on every path.
#pragma once

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/platform/platform.h>

#include <optional>
#include <string>
#include <utility>

#include "core/layer_record.h"

namespace executorch_tensorrt {

// Where an event goes: the caller's tracer, the record for a sidecar, both or neither.
struct TraceTarget {
  executorch::runtime::EventTracer* tracer = nullptr;
  CallRecord* record = nullptr;

  bool active() const { return tracer != nullptr || record != nullptr; }
};

class EventScope {
 public:
  EventScope(TraceTarget target, const char* name) : target_(target), name_(name) {
    if (target_.tracer != nullptr) {
      // A name goes with the id -1; ETDump aborts the process for any other pair.
      entry_ = executorch::runtime::event_tracer_start_profiling_delegate(
          target_.tracer, name, executorch::runtime::kUnsetDelegateDebugIntId);
    }
    if (target_.record != nullptr) {
      start_ = et_pal_current_ticks();
    }
  }

  ~EventScope() {
    if (target_.record != nullptr) {
      target_.record->phases.push_back({name_, start_, et_pal_current_ticks()});
    }
    if (target_.tracer != nullptr) {
      executorch::runtime::event_tracer_end_profiling_delegate(
          target_.tracer, entry_, metadata_ ? metadata_->data() : nullptr, metadata_ ? metadata_->size() : 0);
    }
  }

  EventScope(const EventScope&) = delete;
  EventScope& operator=(const EventScope&) = delete;

  bool has_tracer() const { return target_.tracer != nullptr; }
  void set_metadata(std::string metadata) { metadata_ = std::move(metadata); }

 private:
  TraceTarget target_;
  const char* name_;
  executorch::runtime::EventTracerEntry entry_{};
  std::uint64_t start_ = 0;
  std::optional<std::string> metadata_;
};

}  // namespace executorch_tensorrt
