// EngineCalls: how a loaded engine runs its calls, one at a time: its contexts, the memory on its device, and the CUDA
// graphs of its work.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/event_names.h"
#include "core/metadata.h"
#include "core/profiling_settings.h"
#include "core/selection.h"
#include "delegate/call_io.h"
#include "delegate/contexts.h"
#include "delegate/event_scope.h"
#include "delegate/options.h"
#include "device/graph_cache.h"
#include "engines/engine.h"
#include "process/failure.h"

namespace executorch_tensorrt {

// One call: what it was asked, and what became of it.
struct EngineCall {
  ProfileLevel level;
  TraceTarget trace;
  Request request;
  CallStream stream;  // of an engine on a device
  CallIo io;
  std::optional<DeviceCall> device{};  // once it has begun; ends before io
  std::size_t profile = 0;
  BoundContext* context = nullptr;
  bool use_graphs = false;
  bool replay = false;
  bool is_fixed = false;            // it works on memory that stays where it is from call to call
  std::uint64_t enqueue_start = 0;  // in ticks
  bool has_layers = false;
  std::size_t layers_dropped = 0;
  std::size_t staged_bytes = 0;
  std::optional<std::uint64_t> device_ns{};
  bool returned_early = false;

  // What events of this level go to: nothing, unless it is traced.
  TraceTarget at(ProfileLevel event) const { return level >= event ? trace : TraceTarget{}; }

  // Whether its time on the device is taken.
  bool is_timed() const { return device && !stream.is_captured && at(ProfileLevel::kPhases).active(); }
};

class EngineCalls {
 public:
  // Both outlive this.
  EngineCalls(const EngineMetadata& metadata, FailureLog& failures) : failures_(failures), io_{metadata} {}

  // Waits for work on a device.
  ~EngineCalls();

  // `metadata`, the same as before, gets what the engine reports of itself.
  Status load(const BlobView& blob, EngineMetadata& metadata, const DelegateOptions& options);

  const Engine& engine() const { return *engine_; }

  // The buffers that the engine owns, in the order of `owned`.
  void use_buffers(const std::vector<OwnedBuffer>& owned, const std::vector<EngineBuffer*>& buffers);
  // What a call has written of them counts from now on.
  void advance_buffers() noexcept;

  EngineIo& io() { return io_; }
  const std::vector<Shape>& input_shapes() const { return input_shapes_; }

  // Null for an engine on the host. Whoever calls what follows makes the device current before.
  StreamWork* device() const { return device_.get(); }

  Status run(EngineCall& call);

  // Until no work of earlier calls is under way.
  void wait() { (void)device_->wait(); }

  void collect_layers(bool collect);

  // Of the last call, which returned early: its time on the device, and its layers, as far as they are known by now.
  // Never waits.
  struct EarlyTimes {
    std::optional<std::uint64_t> device_ns;
    LayerRecords layers;
  };
  EarlyTimes take_early_times(const CallRecord& record, bool has_layers);

 private:
  class WorkOfContext;

  Status run_phases(EngineCall& call);
  Status select(EngineCall& call);
  Status begin(EngineCall& call);
  Status check_captured(const EngineCall& call);
  Status infer_output_shapes(EngineCall& call);
  Status bind_outputs(EngineCall& call);
  Status find_graph(EngineCall& call);
  Status enqueue(EngineCall& call);
  void record_graph(EngineCall& call);
  void end_context(std::size_t profile) noexcept;
  Status take_layers(EngineCall& call);

  FailureLog& failures_;
  Request default_request_;
  EngineIo io_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<StreamWork> device_;  // null for an engine on the host
  std::unique_ptr<Contexts> contexts_;
  std::unique_ptr<GraphCache> graphs_;  // of contexts_; null unless they were asked for
  std::vector<Shape> input_shapes_;     // of the call under way, as all that follows
  std::vector<Shape> output_shapes_;
  GraphKey graph_key_;
  bool enqueue_next_ = false;  // the next call, so that the caller can capture its like
};

}  // namespace executorch_tensorrt
