// EngineHandle: what a TensorRTBackend delegate is while its method is loaded.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/blob.h"
#include "core/metadata.h"
#include "delegate/engine_buffers.h"
#include "delegate/engine_calls.h"
#include "delegate/options.h"
#include "delegate/sidecar.h"
#include "process/failure.h"

namespace executorch_tensorrt {

class EngineHandle {
 public:
  // `blob` outlives the handle.
  static Result<std::unique_ptr<EngineHandle>> create(std::string method, const void* blob, std::size_t size,
                                                      DelegateOptions options);

  ~EngineHandle();

  // Inputs, then outputs, in binding order. The calling thread's request is read once. Nothing is bound or written
  // before every input has been validated against the selected profile.
  Status execute(CallIo::Args args, executorch::runtime::EventTracer* tracer);

  // Whether a thread that has Python's GIL lets go of it while it waits for another's call; true unless set.
  void yield_to_python(bool yields) { yields_ = yields; }

  // Reports its failures as those of "method 'forward', engine 1a2b3c4d5e6f".
  FailureLog& failures() { return failures_; }

 private:
  // A call that returned before its work was done, until it is known to be.
  struct Early {
    CallRecord record;
    bool has_layers = false;
  };

  EngineHandle(std::string method, EngineMetadata metadata, DelegateOptions options);

  Status load(const BlobView& blob);
  Status share_buffers();
  WantedBuffer wanted_buffer(const OwnedBuffer& owned) const;
  void apply_profiling(ProfilingSettings settings);
  void take_over_process_wide_profiling();
  void keep_record(EngineCall& call, CallRecord record, const Status& status);
  void settle_early_call();
  const std::string& engine_id() const;
  std::string describe(const EngineCall& call) const;

  std::string method_;
  EngineMetadata metadata_;
  DelegateOptions options_;  // what the method was loaded with
  FailureLog failures_;

  // Taken first in execute() and held to its end: one call at a time uses the contexts and their shared memory.
  std::mutex mutex_;
  bool yields_ = true;
  EngineCalls calls_;
  std::shared_ptr<EngineBuffers> buffers_;  // null when the engine owns none; its mutex is taken after mutex_
  ProfilingSettings profiling_;             // in force: the process-wide control's, else the options'
  std::uint64_t profiling_generation_ = 0;
  std::unique_ptr<Sidecar> sidecar_;
  std::uint64_t num_calls_ = 0;
  std::optional<Early> early_;                    // the last call, if it was traced and is not known to be done
  std::optional<std::uint64_t> early_device_ns_;  // of the call before this one
};

}  // namespace executorch_tensorrt
