// An ETDump that cannot abort the process: it caps the events of one dump and counts what it leaves out.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstddef>
#include <optional>
#include <string>

#include "core/internal.h"

namespace executorch_tensorrt {

class BoundedETDump final : public executorch::etdump::ETDumpGen {
 public:
  // About 90 bytes an event: 1,000,000 events take some 90 MB.
  static constexpr std::size_t kMaxEvents = 1'000'000;

  explicit BoundedETDump(std::size_t max_events = kMaxEvents) : max_events_(max_events) {}

  std::size_t events_dropped() const { return dropped_; }

  // The dump since the last take, or nothing when no event was recorded since (ETDumpGen would crash).
  ETRT_INTERNAL std::optional<std::string> take();

  void create_event_block(const char* name) override;
  executorch::runtime::EventTracerEntry start_profiling(const char* name, executorch::runtime::ChainID chain_id,
                                                        executorch::runtime::DebugHandle debug_handle) override;
  void end_profiling(executorch::runtime::EventTracerEntry entry) override;
  executorch::runtime::EventTracerEntry start_profiling_delegate(
      const char* name, executorch::runtime::DelegateDebugIntId index) override;
  void end_profiling_delegate(executorch::runtime::EventTracerEntry entry, const void* metadata,
                              std::size_t metadata_size) override;
  void log_profiling_delegate(const char* name, executorch::runtime::DelegateDebugIntId index, et_timestamp_t start,
                              et_timestamp_t end, const void* metadata, std::size_t metadata_size) override;

 private:
  // Whether one more event fits; counts it either way.
  bool admit();

  std::size_t max_events_;
  std::size_t events_ = 0;
  std::size_t dropped_ = 0;
  bool has_block_ = false;
};

}  // namespace executorch_tensorrt
