#include "engines/cpu/layer_tracer.h"

#include <executorch/runtime/platform/platform.h>

#include <cstring>

namespace executorch_tensorrt {
namespace {

using executorch::runtime::ChainID;
using executorch::runtime::DebugHandle;
using executorch::runtime::DelegateDebugIntId;

// ExecuTorch's codegen wraps every kernel in an event of this name; the events around it only repeat its time.
constexpr char kKernelPrefix[] = "native_call_";
constexpr std::size_t kKernelPrefixSize = sizeof(kKernelPrefix) - 1;

// A delegate's event has a name or a number.
std::string delegate_event_name(const char* name, DelegateDebugIntId index) {
  return name != nullptr ? name : "delegate " + std::to_string(index);
}

}  // namespace

SilentTracer::Entry LayerTracer::open(std::string name) {
  records_->push_back({std::move(name), et_pal_current_ticks(), 0, Clock::kHost, instruction()});
  return entry_of(static_cast<std::int64_t>(records_->size()) - 1);
}

// ExecuTorch sets the instruction it runs as the tracer's debug handle.
std::int32_t LayerTracer::instruction() { return static_cast<std::int32_t>(current_debug_handle()); }

void LayerTracer::close(const Entry& entry) {
  if (records_ != nullptr && entry.event_id != kNotTaken) {
    (*records_)[static_cast<std::size_t>(entry.event_id)].end = et_pal_current_ticks();
  }
}

SilentTracer::Entry LayerTracer::start_profiling(const char* name, ChainID, DebugHandle) {
  if (records_ == nullptr || std::strncmp(name, kKernelPrefix, kKernelPrefixSize) != 0) {
    return entry_of(kNotTaken);
  }
  return open(name + kKernelPrefixSize);
}

void LayerTracer::end_profiling(Entry entry) { close(entry); }

SilentTracer::Entry LayerTracer::start_profiling_delegate(const char* name, DelegateDebugIntId index) {
  return records_ == nullptr ? entry_of(kNotTaken) : open(delegate_event_name(name, index));
}

void LayerTracer::end_profiling_delegate(Entry entry, const void*, std::size_t) { close(entry); }

void LayerTracer::log_profiling_delegate(const char* name, DelegateDebugIntId index, et_timestamp_t start,
                                         et_timestamp_t end, const void*, std::size_t) {
  if (records_ != nullptr) {
    records_->push_back({delegate_event_name(name, index), start, end, Clock::kHost, instruction()});
  }
}

}  // namespace executorch_tensorrt
