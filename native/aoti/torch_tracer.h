// TorchTracer: an engine's events as record_function() ranges, for torch.profiler.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include "aoti/torch_api.h"

namespace executorch_tensorrt {

class TorchTracer final : public executorch::runtime::EventTracer {
 public:
  executorch::runtime::EventTracerEntry start_profiling_delegate(const char* name,
                                                                 executorch::runtime::DelegateDebugIntId) override {
    torch_api::RecordFunction* record = nullptr;
    if (torch_api::functions().aoti_record_function_start(name, nullptr, nullptr, 0, &record) != 0) {
      record = nullptr;
    }
    executorch::runtime::EventTracerEntry entry{};
    entry.event_id = static_cast<std::int64_t>(torch_api::value_of(record));
    return entry;
  }
  void end_profiling_delegate(executorch::runtime::EventTracerEntry entry, const void*, std::size_t) override {
    if (entry.event_id != 0) {
      (void)torch_api::functions().aoti_record_function_end(
          torch_api::handle<torch_api::RecordFunction>(static_cast<torch_api::Value>(entry.event_id)));
    }
  }

  // What is over already has no range.
  void log_profiling_delegate(const char*, executorch::runtime::DelegateDebugIntId, et_timestamp_t, et_timestamp_t,
                              const void*, std::size_t) override {}

  // What engines do not call.
  void create_event_block(const char*) override {}
  executorch::runtime::EventTracerEntry start_profiling(const char*, executorch::runtime::ChainID,
                                                        executorch::runtime::DebugHandle) override {
    return {};
  }
  void end_profiling(executorch::runtime::EventTracerEntry) override {}
  void track_allocation(executorch::runtime::AllocatorID, std::size_t) override {}
  executorch::runtime::AllocatorID track_allocator(const char*) override { return 0; }
  executorch::runtime::Result<bool> log_evalue(const executorch::runtime::EValue&,
                                               executorch::runtime::LoggedEValueType) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*,
                                                                     executorch::runtime::DelegateDebugIntId,
                                                                     const executorch::aten::Tensor&) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(
      const char*, executorch::runtime::DelegateDebugIntId,
      const executorch::runtime::ArrayRef<executorch::aten::Tensor>) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*,
                                                                     executorch::runtime::DelegateDebugIntId,
                                                                     const int&) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*,
                                                                     executorch::runtime::DelegateDebugIntId,
                                                                     const bool&) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*,
                                                                     executorch::runtime::DelegateDebugIntId,
                                                                     const double&) override {
    return false;
  }
  void set_delegation_intermediate_output_filter(executorch::runtime::EventTracerFilterBase*) override {}
};

}  // namespace executorch_tensorrt
