#include "runtime/engine_handle.h"

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engines/registry.h"
#include "engines/reported.h"
#include "engines/tensor_shape.h"
#include "runtime/backend.h"
#include "runtime/event_scope.h"
#include "runtime/profiling_snapshot.h"
#include "runtime/request_scope.h"
#include "runtime/resized_outputs.h"
#include "runtime/selection_collector.h"

namespace executorch_tensorrt {
namespace {

using executorch::aten::Tensor;
using executorch::runtime::EValue;
using executorch::runtime::EventTracer;

// ETDump stores every event with its name; a call of more layers reports how many it left out. Sidecars get them all.
constexpr std::size_t kMaxLayersPerCall = 4096;

// A tensor argument that fits its binding, or why not.
Status check_argument(const EValue& value, const Binding& binding, const char* side) {
  const std::string name = std::string(side) + " '" + binding.name + "'";
  if (!value.isTensor()) {
    return invalid_argument(name + " is no tensor");
  }
  const Tensor& tensor = value.toTensor();
  const auto dtype = static_cast<ScalarType>(tensor.scalar_type());
  if (binding.dtype != ScalarType::kUnknown && dtype != binding.dtype) {
    return invalid_argument(name + ": got dtype " + std::string(to_string(dtype)) + ", allowed " +
                            std::string(to_string(binding.dtype)));
  }
  if (!executorch::runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size())) {
    return invalid_argument(name +
                            ": got a dim order that is not contiguous (such as channels_last), allowed is "
                            "row-major");
  }
  return {};
}

}  // namespace

struct EngineHandle::Call {
  Args args;
  ProfileLevel level;
  TraceTarget trace;
  Request request;
  std::size_t profile = 0;
  BoundContext* context = nullptr;
  std::size_t layers_dropped = 0;
  ResizedOutputs resized{};

  // What events of this level go to: nothing, unless it is traced.
  TraceTarget at(ProfileLevel event) const { return level >= event ? trace : TraceTarget{}; }
};

EngineHandle::EngineHandle(std::string method, EngineMetadata metadata, DelegateOptions options)
    : method_(std::move(method)),
      metadata_(std::move(metadata)),
      options_(std::move(options)),
      failures_("method '" + method_ + "'" + (metadata_.record ? ", engine " + metadata_.record->engine_id : "")) {}

Result<std::unique_ptr<EngineHandle>> EngineHandle::create(std::string method, const void* blob, std::size_t size,
                                                           DelegateOptions options) {
  const Result<BlobView> view = parse_blob(blob, size);
  if (!view.ok()) {
    return view.status();
  }
  Result<EngineMetadata> metadata = parse_metadata(view->metadata);
  if (!metadata.ok()) {
    return metadata.status();
  }
  std::unique_ptr<EngineHandle> handle(new EngineHandle(std::move(method), std::move(*metadata), std::move(options)));
  Result<std::unique_ptr<Engine>> engine = load_engine(*view, handle->metadata_);
  if (!engine.ok()) {
    return engine.status();
  }
  handle->engine_ = std::move(*engine);
  if (Status status = take_over_reported(*handle->engine_, handle->metadata_); !status.ok()) {
    return status;
  }
  handle->contexts_.resize(handle->engine_->profiles().num_profiles());
  handle->input_shapes_.resize(handle->metadata_.inputs.size());
  handle->apply_profiling(handle->options_.profiling);
  // Last: what fails leaves no buffers behind in a state.
  if (Status status = handle->share_buffers(); !status.ok()) {
    return status;
  }
  return handle;
}

Status EngineHandle::share_buffers() {
  owned_.resize(metadata_.inputs.size());
  if (!metadata_.record || metadata_.record->state.empty()) {
    return {};
  }
  buffers_ = current_engine_buffers();
  if (!buffers_) {
    buffers_ = std::make_shared<EngineBuffers>();
  }
  std::vector<WantedBuffer> wanted;
  for (const OwnedBuffer& owned : metadata_.record->state) {
    Shape shape;
    const InputRanges& ranges = engine_->profiles().ranges(0, owned.input);
    shape.resize(ranges.size());
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      shape[d] = ranges[d].max;
    }
    wanted.push_back({&owned, metadata_.inputs[owned.input].dtype, shape});
  }
  const Result<std::vector<EngineBuffer*>> buffers = buffers_->share(wanted);
  if (!buffers.ok()) {
    return buffers.status();
  }
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    owned_[wanted[k].owned->input] = (*buffers)[k];
  }
  return {};
}

// Changes nothing when it throws.
void EngineHandle::apply_profiling(ProfilingSettings settings) {
  std::unique_ptr<Sidecar> sidecar;
  if (settings.writes_sidecar()) {
    sidecar = std::make_unique<Sidecar>(settings, method_, engine_id(), std::string(engine_->kind()));
  }
  const bool collected_layers = profiling_.level >= ProfileLevel::kLayers;
  sidecar_ = std::move(sidecar);  // the one before writes what it has
  profiling_ = std::move(settings);
  if (collected_layers != (profiling_.level >= ProfileLevel::kLayers)) {
    // A context collects layers from its beginning or never.
    for (auto& context : contexts_) {
      context.reset();
    }
  }
  if (!tracing_compiled_in() && profiling_.level != ProfileLevel::kOff && !profiling_.writes_sidecar()) {
    failures_.warn("events were asked for, but event tracing is not compiled in: build with -DETRT_EVENT_TRACING=ON");
  }
}

void EngineHandle::take_over_process_wide_profiling() {
  if (profiling_generation() == profiling_generation_) {
    return;
  }
  const ProfilingSnapshot snapshot = profiling_snapshot();
  const ProfilingSettings& settings = snapshot.settings ? *snapshot.settings : options_.profiling;
  if (!(settings == profiling_)) {
    apply_profiling(settings);
  }
  profiling_generation_ = snapshot.generation;
}

Status EngineHandle::execute(Args args, EventTracer* tracer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  take_over_process_wide_profiling();
  CallRecord record;
  if (sidecar_) {
    record.phases.reserve(8);  // all that a call adds, so that no event's end allocates
  }
  if (profiling_.level == ProfileLevel::kOff) {
    tracer = nullptr;
  }
  Call call{args, profiling_.level, {tracer, sidecar_ ? &record : nullptr}, current_request()};
  Status status;
  {
    std::unique_lock<std::mutex> buffers_lock;
    if (buffers_) {
      buffers_lock = std::unique_lock<std::mutex>(buffers_->mutex);
    }
    EventScope event(call.at(ProfileLevel::kDelegate), "torchtrt.delegate");
    status = run(call);
    if (event.has_tracer()) {
      event.set_metadata(describe(call));
    }
  }
  ++num_calls_;
  if (sidecar_) {
    record.number = num_calls_ - 1;
    record.profile = call.profile;
    record.request = to_string(call.request);
    record.ok = status.ok();
    record.layers_dropped = call.layers_dropped;
    sidecar_->add(std::move(record));
  }
  return status;
}

Status EngineHandle::run(Call& call) {
  LayerRecords layers;
  const bool collect_layers = call.at(ProfileLevel::kLayers).active();
  {
    EventScope event(call.at(ProfileLevel::kPhases), "torchtrt.input_binding");
    if (Status status = select(call); !status.ok()) {
      return status;
    }
    if (Status status = bind_inputs(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(call.at(ProfileLevel::kPhases), "torchtrt.shape_inference");
    if (Status status = call.context->set_input_shapes(input_shapes_); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(call.at(ProfileLevel::kPhases), "torchtrt.output_binding");
    if (Status status = bind_outputs(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(call.at(ProfileLevel::kPhases), "torchtrt.enqueue_host");
    // Out of its place until it has succeeded: a context that failed or threw is not used again.
    std::unique_ptr<BoundContext> context = std::move(contexts_[call.profile]);
    if (Status status = context->enqueue(collect_layers ? &layers : nullptr); !status.ok()) {
      return status;
    }
    contexts_[call.profile] = std::move(context);
  }
  // The Inspector splits runs whose events differ, so both are there when nothing is staged or waited for.
  {
    EventScope event(call.at(ProfileLevel::kPhases), "torchtrt.output_staging");
    reflect_updates(call);
  }
  call.resized.keep();
  {
    EventScope event(call.at(ProfileLevel::kPhases), "torchtrt.synchronize");
  }
  if (collect_layers) {
    log_layers(call, std::move(layers));
  }
  return {};
}

Status EngineHandle::collect_inputs(Args args) {
  for (Shape& shape : input_shapes_) {
    shape.resize(0);
  }
  if (args.size() != metadata_.num_arguments) {
    return invalid_argument("got " + std::to_string(args.size()) + " arguments, allowed " +
                            std::to_string(metadata_.num_arguments) + " (inputs, then outputs)");
  }
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    if (owned_[i] != nullptr) {
      input_shapes_[i] = owned_[i]->shape;
      continue;
    }
    const EValue& value = *args[*metadata_.inputs[i].argument];
    if (Status status = check_argument(value, metadata_.inputs[i], "input"); !status.ok()) {
      return status;
    }
    input_shapes_[i] = make_shape(value.toTensor().sizes());
  }
  for (const Binding& output : metadata_.outputs) {
    if (!output.argument) {
      continue;
    }
    if (Status status = check_argument(*args[*output.argument], output, "output"); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status EngineHandle::select(Call& call) {
  if (Status status = collect_inputs(call.args); !status.ok()) {
    return status;
  }
  const ProfileTable& profiles = engine_->profiles();
  const Result<std::size_t> profile = select_profile(profiles, input_shapes_, call.request, options_.default_request);
  if (!profile.ok()) {
    return profile.status();
  }
  call.profile = *profile;
  SelectionCollector::record(engine_id(), call.profile);
  std::unique_ptr<BoundContext>& context = contexts_[call.profile];
  if (!context) {
    const bool collect_layers = profiling_.level >= ProfileLevel::kLayers;
    auto created = engine_->create_context(call.profile, collect_layers);
    if (!created.ok()) {
      return created.status();
    }
    context = std::make_unique<BoundContext>(std::move(*created), metadata_.inputs.size(), metadata_.outputs.size());
  }
  call.context = context.get();
  return {};
}

EngineHandle::Memory EngineHandle::input_memory(const Call& call, std::size_t input) const {
  if (const EngineBuffer* owned = owned_[input]; owned != nullptr) {
    return {owned->data(), owned->nbytes};
  }
  const Tensor& tensor = call.args[*metadata_.inputs[input].argument]->toTensor();
  return {tensor.mutable_data_ptr(), tensor.nbytes()};
}

Status EngineHandle::bind_inputs(const Call& call) {
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    const Memory memory = input_memory(call, i);
    if (memory.data == nullptr && memory.nbytes > 0) {
      return invalid_argument("input '" + metadata_.inputs[i].name + "' has no memory: set it before the call");
    }
    if (Status status = call.context->set_input_address(i, memory.data); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status EngineHandle::resize_outputs(Call& call) {
  const std::vector<Shape>& shapes = call.context->output_shapes();
  for (std::size_t o = 0; o < shapes.size(); ++o) {
    const Binding& output = metadata_.outputs[o];
    if (output.argument && !call.resized.resize(call.args[*output.argument]->toTensor(), shapes[o])) {
      return invalid_argument("output '" + output.name + "': " + to_string(shapes[o]) +
                              " does not fit the memory that the program planned for it");
    }
  }
  return {};
}

Result<EngineHandle::Memory> EngineHandle::output_memory(const Call& call, std::size_t o) const {
  const Binding& output = metadata_.outputs[o];
  Memory memory;
  if (output.argument) {
    const Tensor& tensor = call.args[*output.argument]->toTensor();
    memory = {tensor.mutable_data_ptr(), tensor.nbytes()};
    if (memory.data == nullptr && memory.nbytes > 0) {
      return invalid_argument("output '" + output.name +
                              "' has no memory: set it before the call (Module::set_output)");
    }
  }
  if (!output.aliased_input) {
    return memory;
  }
  const Memory input = input_memory(call, *output.aliased_input);
  const Shape& shape = call.context->output_shapes()[o];
  if (shape != input_shapes_[*output.aliased_input] || (output.argument && memory.nbytes != input.nbytes)) {
    return invalid_argument("output '" + output.name + "' is written in place of an input of another size: got " +
                            to_string(shape) + ", allowed " + to_string(input_shapes_[*output.aliased_input]));
  }
  return input;
}

Status EngineHandle::bind_outputs(Call& call) {
  if (Status status = resize_outputs(call); !status.ok()) {
    return status;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const Result<Memory> memory = output_memory(call, o);
    if (!memory.ok()) {
      return memory.status();
    }
    if (Status status = call.context->set_output_address(o, memory->data, memory->nbytes); !status.ok()) {
      return status;
    }
  }
  return {};
}

void EngineHandle::reflect_updates(const Call& call) const {
  for (const Binding& output : metadata_.outputs) {
    if (!output.aliased_input || !output.argument) {
      continue;
    }
    const Tensor tensor = call.args[*output.argument]->toTensor();
    const void* updated = input_memory(call, *output.aliased_input).data;
    if (tensor.mutable_data_ptr() != updated && tensor.nbytes() > 0) {
      std::memcpy(tensor.mutable_data_ptr(), updated, tensor.nbytes());
    }
  }
}

void EngineHandle::log_layers(Call& call, LayerRecords layers) {
  // The Inspector keeps one event of a name per call.
  std::unordered_set<std::string> seen;
  std::unordered_map<std::string, std::size_t> repeats;
  for (LayerRecord& layer : layers) {
    layer.end = std::max(layer.start, layer.end);  // the Inspector cannot read an event that ends before it begins
    std::string name = layer.name;
    while (!seen.insert(name).second) {
      name = layer.name + " #" + std::to_string(++repeats[layer.name]);
    }
    layer.name = std::move(name);
  }
  const std::size_t kept = call.trace.tracer != nullptr ? std::min(layers.size(), kMaxLayersPerCall) : layers.size();
  call.layers_dropped = layers.size() - kept;
  if (call.trace.tracer != nullptr) {
    for (std::size_t k = 0; k < kept; ++k) {
      const LayerRecord& layer = layers[k];
      const std::string metadata = "{\"clock\":\"" + std::string(layer.clock == Clock::kHost ? "host" : "device") +
                                   "\",\"instruction\":" + std::to_string(layer.instruction) + "}";
      executorch::runtime::event_tracer_log_profiling_delegate(
          call.trace.tracer, layer.name.c_str(), executorch::runtime::kUnsetDelegateDebugIntId, layer.start, layer.end,
          metadata.data(), metadata.size());
    }
  }
  if (call.trace.record != nullptr) {
    call.trace.record->layers = std::move(layers);
  }
}

const std::string& EngineHandle::engine_id() const {
  static const std::string none;
  return metadata_.record ? metadata_.record->engine_id : none;
}

std::string EngineHandle::describe(const Call& call) const {
  std::string shapes;
  for (const Shape& shape : input_shapes_) {
    shapes += shapes.empty() ? "[[" : ",[";
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      shapes += (d ? "," : "") + std::to_string(shape[d]);
    }
    shapes += "]";
  }
  shapes += shapes.empty() ? "[]" : "]";
  // No value needs escaping: parse_metadata() refuses other engine ids than hexadecimal ones.
  return "{\"engine_kind\":\"" + std::string(engine_->kind()) + "\",\"engine_id\":\"" + engine_id() +
         "\",\"profile\":" + std::to_string(call.profile) + ",\"request\":\"" + to_string(call.request) +
         "\",\"shapes\":" + shapes +
         ",\"clock\":\"host\",\"staged_bytes\":0,\"layers_dropped\":" + std::to_string(call.layers_dropped) + "}";
}

}  // namespace executorch_tensorrt
