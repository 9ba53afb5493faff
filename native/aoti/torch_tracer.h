// TorchTracer: an engine's events as record_function() ranges, for torch.profiler. What is over already has no range.
#pragma once

#include "aoti/torch_api.h"
#include "engines/silent_tracer.h"

namespace executorch_tensorrt {

class TorchTracer final : public SilentTracer {
 public:
  Entry start_profiling_delegate(const char* name, IntId) override {
    torch_api::RecordFunction* record = nullptr;
    if (torch_api::functions().aoti_record_function_start(name, nullptr, nullptr, 0, &record) != 0) {
      record = nullptr;
    }
    return entry_of(static_cast<std::int64_t>(torch_api::value_of(record)));
  }
  void end_profiling_delegate(Entry entry, const void*, std::size_t) override {
    if (entry.event_id != 0) {
      (void)torch_api::functions().aoti_record_function_end(
          torch_api::handle<torch_api::RecordFunction>(static_cast<torch_api::Value>(entry.event_id)));
    }
  }
};

}  // namespace executorch_tensorrt
