// BoundedTracer: a caller's tracer for the events of one call, as far as it has room for them.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstddef>

#include "engines/silent_tracer.h"

namespace executorch_tensorrt {

// Whether a tracer has a limit that is known here. Others take all events.
bool is_limited(executorch::runtime::EventTracer& tracer);

// ETDump over a buffer of the caller's ends the process when the buffer is full, and gives nothing back before it ends
// itself. So a delegate's events get a quarter of it. The rest stays for ExecuTorch's own, which come at any level.
class BoundedTracer final : public SilentTracer {
 public:
  explicit BoundedTracer(executorch::runtime::EventTracer& caller);

  std::size_t left_out() const { return left_out_; }

  // Bytes of the caller's buffer, at the first event that was left out.
  std::size_t bytes_free() const { return bytes_free_; }
  std::size_t bytes() const;

  // Whether nobody has said yet that this tracer has no room. It is asked once for each tracer that gets full.
  bool is_first_to_leave_out() const;

  Entry start_profiling_delegate(const char* name, IntId index) override;
  void end_profiling_delegate(Entry entry, const void* metadata, std::size_t metadata_size) override;
  void log_profiling_delegate(const char* name, IntId index, et_timestamp_t start, et_timestamp_t end,
                              const void* metadata, std::size_t metadata_size) override;

 private:
  // Whether `nbytes` of text and what ETDump puts around it fit, when `kept` bytes are left; counts what does not.
  bool admit(std::size_t nbytes, std::size_t kept);
  std::size_t kept() const;

  executorch::runtime::EventTracer& caller_;
  const executorch::etdump::internal::ETDumpStaticAllocator* memory_;  // null for a tracer without a limit of its own
  std::size_t left_out_ = 0;
  std::size_t bytes_free_ = 0;
};

}  // namespace executorch_tensorrt
