#include "delegate/engine_calls.h"

#include <executorch/runtime/platform/platform.h>

#include <utility>

#include "delegate/layer_events.h"
#include "engines/registry.h"
#include "engines/reported.h"
#include "process/thread_request.h"

namespace executorch_tensorrt {

// The work that a context is given. Unless it is kept, also where something is thrown, it is over when this ends, and
// the context, which is of no more use, is gone with its graphs.
class EngineCalls::WorkOfContext {
 public:
  WorkOfContext(EngineCalls& calls, EngineCall& call) : calls_(&calls), call_(call) {}
  ~WorkOfContext() {
    if (calls_ == nullptr) {
      return;
    }
    if (call_.device) {
      call_.device->wait();
    }
    calls_->end_context(call_.profile);
  }
  WorkOfContext(const WorkOfContext&) = delete;
  WorkOfContext& operator=(const WorkOfContext&) = delete;

  void keep() { calls_ = nullptr; }

 private:
  EngineCalls* calls_;
  EngineCall& call_;
};

EngineCalls::~EngineCalls() {
  if (!device_) {
    return;
  }
  const CudaDeviceScope scope(device_->cuda(), device_->device());
  (void)device_->wait();
  graphs_.reset();
  contexts_.reset();
  engine_.reset();
  device_.reset();
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
  const std::size_t num_inputs = metadata.inputs.size();
  const std::size_t num_outputs = metadata.outputs.size();
  default_request_ = options.default_request;
  input_shapes_.resize(num_inputs);
  io_.owned_inputs.resize(num_inputs);
  io_.owned_outputs.resize(num_outputs);
  io_.narrows_int64 = engine_->narrows_int64();
  const std::optional<int> device = engine_->device();
  if (!device) {
    contexts_ = std::make_unique<Contexts>(*engine_, num_inputs, num_outputs, nullptr);
    return {};
  }
  auto work = StreamWork::create(*device, num_inputs, num_outputs);
  if (!work.ok()) {
    return work.status();
  }
  device_ = std::move(*work);
  const Cuda& cuda = device_->cuda();
  contexts_ = std::make_unique<Contexts>(*engine_, num_inputs, num_outputs, &cuda);
  if (options.use_cuda_graphs) {
    const CudaDeviceScope scope(cuda, *device);
    auto graphs = GraphCache::create(cuda);
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
  if (collect == contexts_->collects_layers()) {
    return;
  }
  if (device_) {
    (void)device_->wait();
  }
  if (graphs_) {
    graphs_->forget_all();
  }
  contexts_->collect_layers(collect);
}

Status EngineCalls::run(EngineCall& call) {
  if (Status status = run_phases(call); !status.ok()) {
    call.device.reset();  // waits for what it has queued
    return status;
  }
  call.returned_early = call.device && call.device->returned_early();
  if (call.is_timed() && !call.returned_early) {
    call.device_ns = device_->take_device_ns();
  }
  if (call.has_layers && !call.returned_early) {
    if (Status status = take_layers(call); !status.ok()) {
      return status;
    }
  }
  call.io.keep_shapes();
  return {};
}

Status EngineCalls::run_phases(EngineCall& call) {
  const TraceTarget trace = call.at(ProfileLevel::kPhases);
  {
    EventScope event(trace, kInputBindingEvent);
    if (Status status = select(call); !status.ok()) {
      return status;
    }
    if (Status status = begin(call); !status.ok()) {
      return status;
    }
    if (Status status = call.io.place_inputs(call.device); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(trace, kShapeInferenceEvent);
    if (Status status = infer_output_shapes(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(trace, kOutputBindingEvent);
    if (Status status = bind_outputs(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(trace, kEnqueueEvent);
    if (Status status = enqueue(call); !status.ok()) {
      return status;
    }
  }
  // The Inspector splits runs whose events differ, so both are there when nothing is staged or waited for.
  {
    EventScope event(trace, kOutputStagingEvent);
    if (Status status = call.io.bring_back(call.device); !status.ok()) {
      return status;
    }
  }
  EventScope event(trace, kSynchronizeEvent);
  if (!call.device) {
    return {};
  }
  call.staged_bytes = call.device->staged_bytes();
  return call.device->finish();
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
  SelectionCollector::record(io_.metadata, call.profile);
  return {};
}

// Orders the call behind those before it, and sees to its context.
Status EngineCalls::begin(EngineCall& call) {
  if (call.stream.is_captured) {
    if (Status status = check_captured(call); !status.ok()) {
      return status;
    }
  }
  if (device_) {
    auto begun = DeviceCall::begin(*device_, call.stream);
    if (!begun.ok()) {
      return begun.status();
    }
    call.device.emplace(std::move(*begun));
  }
  call.context = contexts_->find(call.profile);
  if (call.context != nullptr) {
    return {};
  }
  if (Status status = device_ ? device_->wait() : Status(); !status.ok()) {
    return status;
  }
  const Result<BoundContext*> made = contexts_->make(call.profile);
  if (!made.ok()) {
    return made.status();
  }
  call.context = *made;
  return {};
}

// What the caller's graph does, it does whenever it runs: all that it needs has to be there now, and to stay.
Status EngineCalls::check_captured(const EngineCall& call) {
  const std::string captured = "the caller's stream is being captured into a CUDA graph: ";
  if (contexts_->collects_layers()) {
    return invalid_argument(captured + "got level layers, allowed the others; trace without layers");
  }
  const BoundContext* context = contexts_->find(call.profile);
  if (context == nullptr || !context->has_run_with(input_shapes_)) {
    enqueue_next_ = true;
    return invalid_argument(captured + "got shapes that optimization profile " + std::to_string(call.profile) +
                            " was not used with last, allowed those that it was; make one such call before the "
                            "capture");
  }
  return call.io.check_captured();
}

Status EngineCalls::infer_output_shapes(EngineCall& call) {
  call.use_graphs = graphs_ != nullptr && !contexts_->collects_layers() && !call.stream.is_captured &&
                    !std::exchange(enqueue_next_, false);
  if (call.use_graphs && graphs_->output_shapes(call.profile, input_shapes_, output_shapes_)) {
    return {};
  }
  Status status = call.context->set_input_shapes(input_shapes_);
  if (status.ok()) {
    output_shapes_ = call.context->output_shapes();
  }
  return status;
}

// A call that is replayed leaves the context as it is.
Status EngineCalls::bind_outputs(EngineCall& call) {
  if (Status status = call.io.place_outputs(output_shapes_, input_shapes_, call.device); !status.ok()) {
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
  if (Status status = call.context->set_input_shapes(input_shapes_); !status.ok()) {
    return status;
  }
  return call.io.bind(*call.context);
}

Status EngineCalls::find_graph(EngineCall& call) {
  graph_key_.profile = call.profile;
  graph_key_.input_shapes = input_shapes_;
  const auto has = [&] {
    graph_key_.addresses = io_.addresses;
    graph_key_.addresses.push_back(contexts_->activation_memory().data);
    return graphs_->has(graph_key_);
  };
  call.replay = has();
  if (call.replay || !graphs_->addresses_move(graph_key_)) {
    return {};
  }
  const Result<bool> fixed = call.io.fix_addresses(*call.device);
  if (!fixed.ok()) {
    return fixed.status();
  }
  call.is_fixed = *fixed;
  call.replay = has();
  return {};
}

Status EngineCalls::enqueue(EngineCall& call) {
  call.has_layers = call.at(ProfileLevel::kLayers).active();
  if (!call.device) {
    WorkOfContext work(*this, call);
    Status status = call.context->enqueue(nullptr, call.has_layers);
    if (status.ok()) {
      work.keep();
    }
    return status;
  }
  const bool is_timed = call.is_timed();
  if (is_timed) {
    call.enqueue_start = et_pal_current_ticks();
  }
  if (call.replay) {
    return call.device->run(is_timed, [&](CudaStream stream) { return graphs_->launch(graph_key_, stream); });
  }
  if (call.stream.is_captured) {
    contexts_->keep_for_graph(*call.context);
  }
  WorkOfContext work(*this, call);
  Status status =
      call.device->run(is_timed, [&](CudaStream stream) { return call.context->enqueue(stream, call.has_layers); });
  if (!status.ok()) {
    return status;
  }
  work.keep();
  if (call.use_graphs) {
    record_graph(call);
  }
  return {};
}

// For the calls to come, if this is not the first of its kind: it has queued its work, with the shapes that the context
// has now.
void EngineCalls::record_graph(EngineCall& call) {
  const bool is_known = graphs_->seen(graph_key_);
  if (!call.is_fixed) {
    graphs_->note_addresses(graph_key_, !is_known);
  }
  if (!is_known) {
    return;
  }
  const Status status = graphs_->capture(graph_key_, output_shapes_,
                                         [&](CudaStream stream) { return call.context->enqueue(stream, false); });
  if (status.ok()) {
    return;
  }
  failures_.warn("calls are not replayed from now on: " + status.message());
  call.device->wait();  // before the context, which may be of no more use, ends
  graphs_.reset();
  contexts_->end(call.profile);
}

void EngineCalls::end_context(std::size_t profile) noexcept {
  if (graphs_) {
    graphs_->forget(profile);
  }
  contexts_->end(profile);
}

Status EngineCalls::take_layers(EngineCall& call) {
  LayerRecords layers;
  if (Status status = call.context->take_layers(layers); !status.ok()) {
    return status;
  }
  arrange_layers(layers, call.enqueue_start);
  if (call.trace.tracer != nullptr) {
    call.layers_dropped = log_layers(*call.trace.tracer, layers);
  }
  if (call.trace.record != nullptr) {
    call.trace.record->layers = std::move(layers);
  }
  return {};
}

// TensorRT reports layers with the help of the stream that they ran on, so they are lost unless this thread's calls
// still go there.
EngineCalls::EarlyTimes EngineCalls::take_early_times(const CallRecord& record, bool has_layers) {
  EarlyTimes times;
  if (!device_->is_done()) {
    return times;
  }
  times.device_ns = device_->take_device_ns();
  BoundContext* const context = contexts_->find(record.profile);
  if (has_layers && context != nullptr && device_->is_on_last_stream() && context->take_layers(times.layers).ok()) {
    arrange_layers(times.layers, record.enqueue_start);
  }
  return times;
}

}  // namespace executorch_tensorrt
