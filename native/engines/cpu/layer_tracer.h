// Collects the nested program's operators, and what its delegates report, as layer records.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <cstddef>
#include <string>

#include "core/layer_record.h"

namespace executorch_tensorrt {

class LayerTracer final : public executorch::runtime::EventTracer {
 public:
  using Entry = executorch::runtime::EventTracerEntry;
  using IntId = executorch::runtime::DelegateDebugIntId;
  using Logged = executorch::runtime::Result<bool>;
  using Tensor = executorch::aten::Tensor;
  using TensorList = executorch::runtime::ArrayRef<executorch::aten::Tensor>;

  // Where the records of the next call go; nullptr drops them.
  void collect_into(LayerRecords* records) { records_ = records; }

  Entry start_profiling(const char* name, executorch::runtime::ChainID chain_id,
                        executorch::runtime::DebugHandle debug_handle) override;
  void end_profiling(Entry entry) override;
  Entry start_profiling_delegate(const char* name, IntId index) override;
  void end_profiling_delegate(Entry entry, const void* metadata, std::size_t metadata_size) override;
  void log_profiling_delegate(const char* name, IntId index, et_timestamp_t start, et_timestamp_t end,
                              const void* metadata, std::size_t metadata_size) override;

  // Blocks, allocations and values are of no use here.
  void create_event_block(const char* name) override;
  void track_allocation(executorch::runtime::AllocatorID id, std::size_t size) override;
  executorch::runtime::AllocatorID track_allocator(const char* name) override;
  Logged log_evalue(const executorch::runtime::EValue& value, executorch::runtime::LoggedEValueType type) override;
  Logged log_intermediate_output_delegate(const char* name, IntId index, const Tensor& output) override;
  Logged log_intermediate_output_delegate(const char* name, IntId index, const TensorList output) override;
  Logged log_intermediate_output_delegate(const char* name, IntId index, const int& output) override;
  Logged log_intermediate_output_delegate(const char* name, IntId index, const bool& output) override;
  Logged log_intermediate_output_delegate(const char* name, IntId index, const double& output) override;
  void set_delegation_intermediate_output_filter(executorch::runtime::EventTracerFilterBase* filter) override;

 private:
  Entry open(std::string name);
  void close(const Entry& entry);
  std::int32_t instruction();

  LayerRecords* records_ = nullptr;
};

}  // namespace executorch_tensorrt
