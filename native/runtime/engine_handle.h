// EngineHandle: what a TensorRTBackend delegate is while its method is loaded.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/metadata.h"
#include "engines/engine.h"
#include "runtime/bound_context.h"
#include "runtime/engine_buffers.h"
#include "runtime/failure.h"
#include "runtime/options.h"
#include "runtime/sidecar.h"

namespace executorch_tensorrt {

class EngineHandle {
 public:
  // `blob` outlives the handle.
  static Result<std::unique_ptr<EngineHandle>> create(std::string method, const void* blob, std::size_t size,
                                                      DelegateOptions options);

  // Inputs, then outputs, in binding order. The calling thread's request is read once. Nothing is bound or written
  // before every input has been validated against the selected profile.
  Status execute(executorch::runtime::Span<executorch::runtime::EValue*> args,
                 executorch::runtime::EventTracer* tracer);

  // Reports its failures as those of "method 'forward', engine 1a2b3c4d5e6f".
  FailureLog& failures() { return failures_; }

 private:
  using Args = executorch::runtime::Span<executorch::runtime::EValue*>;
  struct Call;

  EngineHandle(std::string method, EngineMetadata metadata, DelegateOptions options);

  void apply_profiling(ProfilingSettings settings);
  void take_over_process_wide_profiling();
  Status share_buffers();
  Status collect_inputs(Args args);
  Status select(Call& call);
  struct Memory {
    void* data = nullptr;
    std::size_t nbytes = 0;
  };
  Memory input_memory(const Call& call, std::size_t input) const;
  Status bind_inputs(const Call& call);
  Status bind_outputs(Call& call);
  Status resize_outputs(Call& call);
  Result<Memory> output_memory(const Call& call, std::size_t output) const;
  Status run(Call& call);
  // To the caller's outputs that an engine wrote in place of inputs, unless they are the same memory.
  void reflect_updates(const Call& call) const;
  void log_layers(Call& call, LayerRecords layers);
  const std::string& engine_id() const;
  std::string describe(const Call& call) const;

  std::string method_;
  EngineMetadata metadata_;
  DelegateOptions options_;  // what the method was loaded with
  FailureLog failures_;
  std::unique_ptr<Engine> engine_;

  // Taken first in execute() and held to its end: one call at a time uses the contexts and their shared memory.
  std::mutex mutex_;
  std::vector<std::unique_ptr<BoundContext>> contexts_;  // by profile, made on first use; end before engine_
  std::vector<Shape> input_shapes_;
  std::shared_ptr<EngineBuffers> buffers_;  // null when the engine owns none; its mutex is taken after mutex_
  std::vector<EngineBuffer*> owned_;        // by input, null where the input is an argument
  ProfilingSettings profiling_;             // in force: the process-wide control's, else the options'
  std::uint64_t profiling_generation_ = 0;
  std::unique_ptr<Sidecar> sidecar_;
  std::uint64_t num_calls_ = 0;
};

}  // namespace executorch_tensorrt
