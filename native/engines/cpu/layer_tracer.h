// Collects the nested program's operators, and what its delegates report, as layer records.
#pragma once

#include <cstddef>
#include <string>

#include "core/layer_record.h"
#include "engines/silent_tracer.h"

namespace executorch_tensorrt {

class LayerTracer final : public SilentTracer {
 public:
  // Where the records of the next call go; nullptr drops them.
  void collect_into(LayerRecords* records) { records_ = records; }

  Entry start_profiling(const char* name, executorch::runtime::ChainID chain_id,
                        executorch::runtime::DebugHandle debug_handle) override;
  void end_profiling(Entry entry) override;
  Entry start_profiling_delegate(const char* name, IntId index) override;
  void end_profiling_delegate(Entry entry, const void* metadata, std::size_t metadata_size) override;
  void log_profiling_delegate(const char* name, IntId index, et_timestamp_t start, et_timestamp_t end,
                              const void* metadata, std::size_t metadata_size) override;

 private:
  Entry open(std::string name);
  void close(const Entry& entry);
  std::int32_t instruction();

  LayerRecords* records_ = nullptr;
};

}  // namespace executorch_tensorrt
