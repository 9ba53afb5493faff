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

  // "method 'forward', engine 1a2b3c4d5e6f", for messages.
  const std::string& label() const { return label_; }

 private:
  using Args = executorch::runtime::Span<executorch::runtime::EValue*>;
  struct Call;

  EngineHandle(std::string method, EngineMetadata metadata, DelegateOptions options);

  void apply_profiling(const ProfilingSettings& settings);
  void take_over_process_wide_profiling();
  Status collect_inputs(Args args);
  Status select(Call& call);
  Status bind_inputs(const Call& call);
  Status bind_outputs(const Call& call);
  Status resize_outputs(const Call& call);
  Status run(Call& call);
  void log_layers(Call& call, LayerRecords layers);
  const std::string& engine_id() const;
  std::string describe(const Call& call) const;

  std::string method_;
  EngineMetadata metadata_;
  DelegateOptions options_;  // what the method was loaded with
  std::string label_;
  std::unique_ptr<Engine> engine_;

  // Taken first in execute() and held to its end: one call at a time uses the contexts and their shared memory.
  std::mutex mutex_;
  std::vector<std::unique_ptr<BoundContext>> contexts_;  // by profile, made on first use; end before engine_
  std::vector<Shape> input_shapes_;
  ProfilingSettings profiling_;  // in force: the process-wide control's, else the options'
  std::uint64_t profiling_generation_ = 0;
  std::unique_ptr<Sidecar> sidecar_;
  std::uint64_t num_calls_ = 0;
};

}  // namespace executorch_tensorrt
