#include "delegate/engine_calls.h"

#include <executorch/runtime/platform/platform.h>

#include <utility>

#include "engines/registry.h"
#include "engines/reported.h"
#include "process/thread_request.h"

namespace executorch_tensorrt {

// What a call has put on its stream. Unless it is kept, it is over when this ends, also where something is thrown, and
// the graphs of the profile are gone.
class EngineCalls::DeviceWork {
 public:
  explicit DeviceWork(DeviceIo* device, GraphCache* graphs = nullptr, std::size_t profile = 0)
      : device_(device), graphs_(graphs), profile_(profile) {}
  ~DeviceWork() {
    if (device_ == nullptr) {
      return;
    }
    device_->abandon();
    if (graphs_ != nullptr) {
      graphs_->forget(profile_);
    }
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  void keep() { device_ = nullptr; }

 private:
  DeviceIo* device_;
  GraphCache* graphs_;
  std::size_t profile_;
};

// The context of a call that is queued: of no more use unless it is kept, also where something is thrown.
class EngineCalls::ContextAtWork {
 public:
  ContextAtWork(EngineCalls& calls, std::size_t profile) : calls_(&calls), profile_(profile) {}
  ~ContextAtWork() {
    if (calls_ != nullptr) {
      calls_->end_context(profile_);
    }
  }
  ContextAtWork(const ContextAtWork&) = delete;
  ContextAtWork& operator=(const ContextAtWork&) = delete;

  void keep() { calls_ = nullptr; }

 private:
  EngineCalls* calls_;
  std::size_t profile_;
};

EngineCalls::~EngineCalls() {
  if (!io_.device) {
    return;
  }
  const CudaDeviceScope scope(io_.device->cuda(), io_.device->device());
  (void)io_.device->wait();
  graphs_.reset();
  contexts_.clear();
  kept_.clear();
  engine_.reset();
  clock_.reset();
  io_.device.reset();
}

Status EngineCalls::load(const BlobView& blob, EngineMetadata& metadata, const DelegateOptions& options) {
  Result<std::unique_ptr<Engine>> engine = load_engine(blob, metadata);
  if (!engine.ok()) {
    return engine.status();
  }
  engine_ = std::move(*engine);
  if (Status status = take_over_reported(*engine_, metadata); !status.ok()) {
    return status;
  }
  default_request_ = options.default_request;
  io_.owned_inputs.resize(metadata.inputs.size());
  io_.owned_outputs.resize(metadata.outputs.size());
  contexts_.resize(engine_->profiles().num_profiles());
  input_shapes_.resize(metadata.inputs.size());
  const std::optional<int> device = engine_->device();
  if (!device) {
    return {};
  }
  auto io = DeviceIo::create(*device, metadata.inputs.size(), metadata.outputs.size());
  if (!io.ok()) {
    return io.status();
  }
  io_.device = std::move(*io);
  io_.narrows_int64 = engine_->narrows_int64();
  clock_ = std::make_unique<DeviceClock>(io_.device->cuda());
  if (options.use_cuda_graphs) {
    const CudaDeviceScope scope(io_.device->cuda(), *device);
    auto graphs = GraphCache::create(io_.device->cuda());
    if (!graphs.ok()) {
      return graphs.status();
    }
    graphs_ = std::move(*graphs);
  }
  return {};
}

void EngineCalls::use_buffers(const std::vector<OwnedBuffer>& owned, const std::vector<EngineBuffer*>& buffers) {
  for (std::size_t k = 0; k < owned.size(); ++k) {
    io_.owned_inputs[owned[k].input] = buffers[k];
    if (owned[k].output) {
      io_.owned_outputs[*owned[k].output] = buffers[k];
    }
  }
}

void EngineCalls::advance_buffers() noexcept {
  for (EngineBuffer* buffer : io_.owned_outputs) {
    if (buffer != nullptr) {
      buffer->memory->advance();
    }
  }
}

void EngineCalls::collect_layers(bool collect) {
  if (std::exchange(collects_layers_, collect) == collect) {
    return;
  }
  if (io_.device) {
    (void)io_.device->wait();
  }
  if (graphs_) {
    graphs_->forget_all();
  }
  for (std::size_t profile = 0; profile < contexts_.size(); ++profile) {
    end_context(profile);
  }
}

Status EngineCalls::run(EngineCall& call) {
  DeviceWork work(io_.device.get());
  Status status = run_steps(call);
  if (status.ok()) {
    work.keep();
  }
  return status;
}

Status EngineCalls::run_steps(EngineCall& call) {
  if (Status status = run_phases(call); !status.ok()) {
    return status;
  }
  call.io.keep_shapes();
  call.returned_early = io_.device && io_.device->returned_early();
  if (call.returned_early) {
    return {};
  }
  if (is_timed(call)) {
    call.device_ns = clock_->take_ns(io_.device->end_event());
  }
  return call.has_layers ? take_layers(call) : Status();
}

Status EngineCalls::run_phases(EngineCall& call) {
  const TraceTarget trace = call.at(ProfileLevel::kPhases);
  {
    EventScope event(trace, "torchtrt.input_binding");
    if (Status status = select(call); !status.ok()) {
      return status;
    }
    call.captured = is_captured();
    if (Status status = call.captured ? check_captured(call) : Status(); !status.ok()) {
      return status;
    }
    if (Status status = io_.device ? io_.device->begin() : Status(); !status.ok()) {
      return status;
    }
    if (Status status = use_context(call); !status.ok()) {
      return status;
    }
    if (Status status = call.io.place_inputs(); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(trace, "torchtrt.shape_inference");
    if (Status status = infer_output_shapes(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(trace, "torchtrt.output_binding");
    if (Status status = bind_outputs(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(trace, "torchtrt.enqueue_host");
    if (Status status = enqueue(call); !status.ok()) {
      return status;
    }
  }
  // The Inspector splits runs whose events differ, so both are there when nothing is staged or waited for.
  {
    EventScope event(trace, "torchtrt.output_staging");
    if (Status status = call.io.bring_back(); !status.ok()) {
      return status;
    }
  }
  EventScope event(trace, "torchtrt.synchronize");
  return io_.device ? io_.device->finish() : Status();
}

Status EngineCalls::select(EngineCall& call) {
  if (Status status = call.io.collect_input_shapes(input_shapes_); !status.ok()) {
    return status;
  }
  const ProfileTable& profiles = engine_->profiles();
  const Result<std::size_t> profile = select_profile(profiles, input_shapes_, call.request, default_request_);
  if (!profile.ok()) {
    return profile.status();
  }
  call.profile = *profile;
  SelectionCollector::record(io_.metadata.record ? io_.metadata.record->engine_id : std::string(), call.profile);
  return {};
}

Status EngineCalls::use_context(EngineCall& call) {
  if (!contexts_[call.profile]) {
    auto made = make_context(call.profile);
    if (!made.ok()) {
      return made.status();
    }
    contexts_[call.profile] = std::move(*made);
    forget_moved();
  }
  call.context = contexts_[call.profile].get();
  return {};
}

// When all contexts have got other memory: what was recorded of their work is stale.
void EngineCalls::forget_moved() {
  const std::size_t moves = engine_->memory_moves();
  if (std::exchange(memory_moves_, moves) == moves) {
    return;
  }
  if (graphs_) {
    graphs_->forget_all();
  }
  for (const std::unique_ptr<BoundContext>& context : contexts_) {
    if (context) {
      context->forget_run();
    }
  }
}

Result<std::unique_ptr<BoundContext>> EngineCalls::make_context(std::size_t profile) {
  if (io_.device) {
    if (Status status = io_.device->wait(); !status.ok()) {
      return status;
    }
  }
  auto created = engine_->create_context(profile, collects_layers_);
  if (!created.ok()) {
    return created.status();
  }
  return std::make_unique<BoundContext>(std::move(*created), io_.metadata.inputs.size(), io_.metadata.outputs.size());
}

Status EngineCalls::infer_output_shapes(EngineCall& call) {
  call.use_graphs = graphs_ != nullptr && !collects_layers_ && !call.captured && !std::exchange(enqueue_next_, false);
  call.output_shapes = call.use_graphs ? graphs_->output_shapes(call.profile, input_shapes_) : nullptr;
  if (call.output_shapes != nullptr) {
    return {};
  }
  call.shapes_are_set = true;
  call.output_shapes = &call.context->output_shapes();
  return call.context->set_input_shapes(input_shapes_);
}

// A call that is replayed leaves the context as it is.
Status EngineCalls::bind_outputs(EngineCall& call) {
  if (Status status = call.io.place_outputs(*call.output_shapes, input_shapes_); !status.ok()) {
    return status;
  }
  if (call.use_graphs) {
    if (Status status = find_graph(call); !status.ok()) {
      return status;
    }
  }
  if (call.replay) {
    return {};
  }
  if (!call.shapes_are_set) {
    if (Status status = call.context->set_input_shapes(input_shapes_); !status.ok()) {
      return status;
    }
  }
  return call.io.bind(*call.context);
}

Status EngineCalls::find_graph(EngineCall& call) {
  graph_key_.profile = call.profile;
  graph_key_.input_shapes = input_shapes_;
  graph_key_.addresses = io_.addresses;
  call.replay = graphs_->has(graph_key_);
  if (call.replay || !graphs_->addresses_move(graph_key_)) {
    return {};
  }
  if (Status status = call.io.fix_addresses(); !status.ok()) {
    return status;
  }
  call.fixed = true;
  graph_key_.addresses = io_.addresses;
  call.replay = graphs_->has(graph_key_);
  return {};
}

Status EngineCalls::enqueue(EngineCall& call) {
  call.has_layers = call.at(ProfileLevel::kLayers).active();
  if (is_timed(call)) {
    call.enqueue_start = et_pal_current_ticks();
    clock_->start(io_.device->stream());
  }
  Status status = do_work(call);
  if (status.ok() && is_timed(call)) {
    io_.device->record_end();
  }
  return status;
}

Status EngineCalls::do_work(EngineCall& call) {
  if (call.replay) {
    io_.device->enqueued();
    return graphs_->launch(graph_key_, io_.device->stream());
  }
  Status status = queue_work(call);
  if (!status.ok() || !call.use_graphs) {
    return status;
  }
  const bool seen = graphs_->seen(graph_key_);
  if (!call.fixed) {
    graphs_->note_addresses(graph_key_, !seen);
  }
  if (seen) {
    capture(call);
  }
  return status;
}

Status EngineCalls::queue_work(EngineCall& call) {
  if (call.captured) {
    keep_for_caller(call);
  }
  ContextAtWork context(*this, call.profile);
  DeviceWork work(io_.device.get(), graphs_.get(), call.profile);  // over before the context ends
  DeviceIo* const device = io_.device.get();
  if (device != nullptr) {
    device->enqueued();
  }
  Status status = call.context->enqueue(device != nullptr ? device->stream() : nullptr, call.has_layers);
  if (!status.ok()) {
    return status;
  }
  work.keep();
  context.keep();
  return {};
}

// For the calls to come: this one has queued its work, with the shapes that the context has now.
void EngineCalls::capture(EngineCall& call) {
  const Status status = graphs_->capture(graph_key_, *call.output_shapes,
                                         [&](CudaStream stream) { return call.context->enqueue(stream, false); });
  if (status.ok()) {
    return;
  }
  failures_.warn("calls are not replayed from now on: " + status.message());
  io_.device->wait_for_queued();  // before the context, which may be of no more use, ends
  end_context(call.profile);
  graphs_.reset();
}

}  // namespace executorch_tensorrt
