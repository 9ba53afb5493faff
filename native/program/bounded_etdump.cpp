#include "program/bounded_etdump.h"

#include <cstdlib>

#include "engines/silent_tracer.h"

namespace executorch_tensorrt {
namespace {

using executorch::etdump::ETDumpGen;
using executorch::runtime::ChainID;
using executorch::runtime::DebugHandle;
using executorch::runtime::DelegateDebugIntId;
using executorch::runtime::EventTracerEntry;

}  // namespace

bool BoundedETDump::admit() {
  if (has_block_ && events_ < max_events_) {
    ++events_;
    return true;
  }
  ++dropped_;
  return false;
}

std::optional<std::string> BoundedETDump::take() {
  if (!has_block_) {
    return std::nullopt;
  }
  const executorch::etdump::ETDumpResult result = get_etdump_data();
  has_block_ = false;
  events_ = 0;
  if (result.buf == nullptr) {
    return std::nullopt;
  }
  std::string bytes(static_cast<const char*>(result.buf), result.size);
  std::free(result.buf);
  return bytes;
}

void BoundedETDump::create_event_block(const char* name) {
  if (!has_block_) {
    dropped_ = 0;
  } else if (events_ >= max_events_) {
    return;  // a full dump takes no empty blocks either
  }
  has_block_ = true;
  ETDumpGen::create_event_block(name);
}

EventTracerEntry BoundedETDump::start_profiling(const char* name, ChainID chain_id, DebugHandle debug_handle) {
  return admit() ? ETDumpGen::start_profiling(name, chain_id, debug_handle)
                 : SilentTracer::entry_of(SilentTracer::kNotTaken);
}

void BoundedETDump::end_profiling(EventTracerEntry entry) {
  if (entry.event_id != SilentTracer::kNotTaken) {
    ETDumpGen::end_profiling(entry);
  }
}

EventTracerEntry BoundedETDump::start_profiling_delegate(const char* name, DelegateDebugIntId index) {
  return admit() ? ETDumpGen::start_profiling_delegate(name, index) : SilentTracer::entry_of(SilentTracer::kNotTaken);
}

void BoundedETDump::end_profiling_delegate(EventTracerEntry entry, const void* metadata, std::size_t metadata_size) {
  if (entry.event_id != SilentTracer::kNotTaken) {
    ETDumpGen::end_profiling_delegate(entry, metadata, metadata_size);
  }
}

void BoundedETDump::log_profiling_delegate(const char* name, DelegateDebugIntId index, et_timestamp_t start,
                                           et_timestamp_t end, const void* metadata, std::size_t metadata_size) {
  if (admit()) {
    ETDumpGen::log_profiling_delegate(name, index, start, end, metadata, metadata_size);
  }
}

}  // namespace executorch_tensorrt
