#include "runtime/engine_handle.h"

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engines/registry.h"
#include "runtime/event_scope.h"
#include "runtime/request_scope.h"
#include "runtime/selection_collector.h"

namespace executorch_tensorrt {
namespace {

using executorch::aten::SizesType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::EventTracer;

// ETDump stores every event with its name; a call of more layers reports how many it left out.
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

bool has_shape(const Tensor& tensor, const Shape& shape) {
  const auto sizes = tensor.sizes();
  if (sizes.size() != shape.rank()) {
    return false;
  }
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (sizes[d] != shape[d]) {
      return false;
    }
  }
  return true;
}

Error resize(Tensor tensor, const Shape& shape) {
  SizesType sizes[kMaxRank];
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    sizes[d] = static_cast<SizesType>(shape[d]);
  }
  return executorch::runtime::resize_tensor(tensor, {sizes, shape.rank()});
}

}  // namespace

struct EngineHandle::Call {
  Args args;
  EventTracer* delegate_tracer;
  EventTracer* phase_tracer;
  EventTracer* layer_tracer;
  Request request;
  std::size_t profile = 0;
  BoundContext* context = nullptr;
  std::size_t layers_dropped = 0;
};

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
  std::string label = "method '" + method + "'";
  if (metadata->record) {
    label += ", engine " + metadata->record->engine_id;
  }
  std::unique_ptr<EngineHandle> handle(new EngineHandle(std::move(label), std::move(*metadata), options));
  Result<std::unique_ptr<Engine>> engine = load_engine(*view, handle->metadata_);
  if (!engine.ok()) {
    return engine.status();
  }
  handle->engine_ = std::move(*engine);
  handle->contexts_.resize(handle->engine_->profiles().num_profiles());
  handle->input_shapes_.resize(handle->metadata_.inputs.size());
  return handle;
}

Status EngineHandle::execute(Args args, EventTracer* tracer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto tracer_at = [&](ProfileLevel level) { return options_.profile_level >= level ? tracer : nullptr; };
  Call call{args, tracer_at(ProfileLevel::kDelegate), tracer_at(ProfileLevel::kPhases),
            tracer_at(ProfileLevel::kLayers), current_request()};
  EventScope event(call.delegate_tracer, "torchtrt.delegate");
  Status status = run(call);
  if (event.active()) {
    event.set_metadata(describe(call));
  }
  return status;
}

Status EngineHandle::run(Call& call) {
  LayerRecords layers;
  {
    EventScope event(call.phase_tracer, "torchtrt.input_binding");
    if (Status status = select(call); !status.ok()) {
      return status;
    }
    if (Status status = bind_inputs(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(call.phase_tracer, "torchtrt.shape_inference");
    if (Status status = call.context->set_input_shapes(input_shapes_); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(call.phase_tracer, "torchtrt.output_binding");
    if (Status status = bind_outputs(call); !status.ok()) {
      return status;
    }
  }
  {
    EventScope event(call.phase_tracer, "torchtrt.enqueue_host");
    if (Status status = call.context->enqueue(call.layer_tracer != nullptr ? &layers : nullptr); !status.ok()) {
      contexts_[call.profile].reset();
      return status;
    }
  }
  // The Inspector splits runs whose events differ, so both are there when nothing is staged or waited for.
  {
    EventScope event(call.phase_tracer, "torchtrt.output_staging");
  }
  {
    EventScope event(call.phase_tracer, "torchtrt.synchronize");
  }
  log_layers(call, layers);
  return {};
}

Status EngineHandle::collect_inputs(Args args) {
  const std::size_t expected = metadata_.inputs.size() + metadata_.outputs.size();
  if (args.size() != expected) {
    return invalid_argument("got " + std::to_string(args.size()) + " arguments, allowed " + std::to_string(expected) +
                            " (" + std::to_string(metadata_.inputs.size()) + " inputs, then outputs)");
  }
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    if (Status status = check_argument(*args[i], metadata_.inputs[i], "input"); !status.ok()) {
      return status;
    }
    input_shapes_[i] = make_shape(args[i]->toTensor().sizes());
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const EValue& value = *args[metadata_.inputs.size() + o];
    if (Status status = check_argument(value, metadata_.outputs[o], "output"); !status.ok()) {
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
    const bool collect_layers = options_.profile_level >= ProfileLevel::kLayers;
    auto created = engine_->create_context(call.profile, collect_layers);
    if (!created.ok()) {
      return created.status();
    }
    context = std::make_unique<BoundContext>(std::move(*created), metadata_.inputs.size(), metadata_.outputs.size());
  }
  call.context = context.get();
  return {};
}

Status EngineHandle::bind_inputs(const Call& call) {
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    const void* data = call.args[i]->toTensor().const_data_ptr();
    if (Status status = call.context->set_input_address(i, data); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status EngineHandle::resize_outputs(const Call& call) {
  const std::vector<Shape>& shapes = call.context->output_shapes();
  std::vector<Shape> before;
  for (std::size_t o = 0; o < shapes.size(); ++o) {
    const Tensor tensor = call.args[metadata_.inputs.size() + o]->toTensor();
    before.push_back(make_shape(tensor.sizes()));
    if (has_shape(tensor, shapes[o]) || resize(tensor, shapes[o]) == Error::Ok) {
      continue;
    }
    for (std::size_t undo = 0; undo < o; ++undo) {
      (void)resize(call.args[metadata_.inputs.size() + undo]->toTensor(), before[undo]);
    }
    return invalid_argument("output '" + metadata_.outputs[o].name + "': " + to_string(shapes[o]) +
                            " does not fit the memory that the program planned for it");
  }
  return {};
}

Status EngineHandle::bind_outputs(const Call& call) {
  if (Status status = resize_outputs(call); !status.ok()) {
    return status;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const Tensor tensor = call.args[metadata_.inputs.size() + o]->toTensor();
    void* data = tensor.mutable_data_ptr();
    if (data == nullptr && tensor.nbytes() > 0) {
      return invalid_argument("output '" + metadata_.outputs[o].name +
                              "' has no memory: set it before the call (Module::set_output)");
    }
    if (Status status = call.context->set_output_address(o, data, tensor.nbytes()); !status.ok()) {
      return status;
    }
  }
  return {};
}

void EngineHandle::log_layers(Call& call, const LayerRecords& layers) {
  if (call.layer_tracer == nullptr) {
    return;
  }
  std::unordered_map<std::string, std::size_t> seen;
  const std::size_t kept = std::min(layers.size(), kMaxLayersPerCall);
  call.layers_dropped = layers.size() - kept;
  for (std::size_t k = 0; k < kept; ++k) {
    const LayerRecord& layer = layers[k];
    // The Inspector keeps one event of a name per call.
    const std::size_t repeat = seen[layer.name]++;
    const std::string name = repeat == 0 ? layer.name : layer.name + " #" + std::to_string(repeat);
    executorch::runtime::event_tracer_log_profiling_delegate(call.layer_tracer, name.c_str(),
                                                             executorch::runtime::kUnsetDelegateDebugIntId, layer.start,
                                                             std::max(layer.start, layer.end));
  }
}

const std::string& EngineHandle::engine_id() const {
  static const std::string none;
  return metadata_.record ? metadata_.record->engine_id : none;
}

std::string EngineHandle::describe(const Call& call) const {
  // No value needs escaping: parse_metadata() refuses other engine ids than hexadecimal ones.
  return "{\"engine_kind\":\"" + std::string(engine_->kind()) + "\",\"engine_id\":\"" + engine_id() +
         "\",\"profile\":" + std::to_string(call.profile) + ",\"request\":\"" + to_string(call.request) +
         "\",\"clock\":\"host\",\"staged_bytes\":0,\"layers_dropped\":" + std::to_string(call.layers_dropped) + "}";
}

}  // namespace executorch_tensorrt
