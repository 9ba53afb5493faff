// EngineCalls: how a loaded engine runs its calls, one at a time: its contexts, the memory on its device, and the CUDA
// graphs of its work.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/metadata.h"
#include "core/profiling_settings.h"
#include "core/selection.h"
#include "delegate/bound_context.h"
#include "delegate/call_io.h"
#include "delegate/event_scope.h"
#include "delegate/options.h"
#include "device/device_clock.h"
#include "device/graph_cache.h"
#include "engines/engine.h"
#include "process/failure.h"

namespace executorch_tensorrt {

// One call: what it was asked, and what became of it.
struct EngineCall {
  ProfileLevel level;
  TraceTarget trace;
  Request request;
  CallIo io;
  std::size_t profile = 0;
  BoundContext* context = nullptr;
  const std::vector<Shape>* output_shapes = nullptr;
  bool use_graphs = false;
  bool shapes_are_set = false;  // those of the context
  bool replay = false;
  bool fixed = false;               // it works on memory that stays where it is from call to call
  std::uint64_t enqueue_start = 0;  // in ticks
  bool has_layers = false;
  std::size_t layers_dropped = 0;
  std::optional<std::uint64_t> device_ns{};
  bool returned_early = false;
  bool captured = false;  // into a graph of the caller's

  // What events of this level go to: nothing, unless it is traced.
  TraceTarget at(ProfileLevel event) const { return level >= event ? trace : TraceTarget{}; }
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
  std::size_t staged_bytes() const { return io_.device ? io_.device->staged_bytes() : 0; }

  // Null for an engine on the host. Whoever calls what follows makes the device current before.
  DeviceIo* device() const { return io_.device.get(); }

  // Whether the call's stream is being captured by the caller.
  bool is_captured() const { return io_.device && io_.device->is_captured(); }

  Status run(EngineCall& call);

  // Until no work of earlier calls is under way.
  void wait() { (void)io_.device->wait(); }

  // Contexts collect layers from their beginning or never: they are made again when it changes.
  void collect_layers(bool collect);

  // Whether a call's time on the device is taken.
  bool is_timed(const EngineCall& call) const;

  // Of the last call, which returned early: its time on the device, and its layers, as far as they are known by now.
  // Never waits.
  struct EarlyTimes {
    std::optional<std::uint64_t> device_ns;
    LayerRecords layers;
  };
  EarlyTimes take_early_times(const CallRecord& record, bool has_layers);

 private:
  class DeviceWork;
  class ContextAtWork;

  Status run_steps(EngineCall& call);
  Status run_phases(EngineCall& call);
  Status select(EngineCall& call);
  Status check_captured(const EngineCall& call);
  void keep_for_caller(EngineCall& call);
  void end_context(std::size_t profile) noexcept;
  void forget_moved();
  Status use_context(EngineCall& call);
  Result<std::unique_ptr<BoundContext>> make_context(std::size_t profile);
  Status infer_output_shapes(EngineCall& call);
  Status bind_outputs(EngineCall& call);
  Status find_graph(EngineCall& call);
  Status enqueue(EngineCall& call);
  Status do_work(EngineCall& call);
  Status queue_work(EngineCall& call);
  void capture(EngineCall& call);
  Status take_layers(EngineCall& call);

  FailureLog& failures_;
  Request default_request_;
  bool collects_layers_ = false;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<BoundContext>> contexts_;  // by profile, made on first use; end before engine_
  std::vector<std::unique_ptr<BoundContext>> kept_;      // for graphs of the caller's alone
  std::vector<Shape> input_shapes_;
  EngineIo io_;
  std::unique_ptr<DeviceClock> clock_;  // null for an engine on the host
  std::unique_ptr<GraphCache> graphs_;  // null unless they were asked for
  GraphKey graph_key_;                  // of the call under way
  std::size_t memory_moves_ = 0;        // of the engine, when forget_moved() last looked
  bool enqueue_next_ = false;           // the next call, so that the caller can capture its like
};

}  // namespace executorch_tensorrt
