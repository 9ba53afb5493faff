// SilentTracer: an EventTracer that takes no events. What reports some of them overrides those.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <cstddef>
#include <cstdint>

namespace executorch_tensorrt {

class SilentTracer : public executorch::runtime::EventTracer {
 public:
  using Entry = executorch::runtime::EventTracerEntry;
  using IntId = executorch::runtime::DelegateDebugIntId;
  using Logged = executorch::runtime::Result<bool>;
  using Tensor = executorch::aten::Tensor;
  using TensorList = executorch::runtime::ArrayRef<executorch::aten::Tensor>;

  // Of an event that is not taken; no tracer of ExecuTorch has this id.
  static constexpr std::int64_t kNotTaken = INT64_MIN;

  static Entry entry_of(std::int64_t id) {
    Entry entry{};
    entry.event_id = id;
    entry.delegate_event_id_type = executorch::runtime::DelegateDebugIdType::kNone;
    return entry;
  }

  void create_event_block(const char*) override {}
  Entry start_profiling(const char*, executorch::runtime::ChainID, executorch::runtime::DebugHandle) override {
    return entry_of(kNotTaken);
  }
  void end_profiling(Entry) override {}
  Entry start_profiling_delegate(const char*, IntId) override { return entry_of(kNotTaken); }
  void end_profiling_delegate(Entry, const void*, std::size_t) override {}
  void log_profiling_delegate(const char*, IntId, et_timestamp_t, et_timestamp_t, const void*, std::size_t) override {}
  void track_allocation(executorch::runtime::AllocatorID, std::size_t) override {}
  executorch::runtime::AllocatorID track_allocator(const char*) override { return 0; }
  Logged log_evalue(const executorch::runtime::EValue&, executorch::runtime::LoggedEValueType) override {
    return false;
  }
  Logged log_intermediate_output_delegate(const char*, IntId, const Tensor&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, IntId, const TensorList) override { return false; }
  Logged log_intermediate_output_delegate(const char*, IntId, const int&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, IntId, const bool&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, IntId, const double&) override { return false; }
  void set_delegation_intermediate_output_filter(executorch::runtime::EventTracerFilterBase*) override {}
};

}  // namespace executorch_tensorrt
