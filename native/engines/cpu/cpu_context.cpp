#include "engines/cpu/cpu_context.h"

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/evalue.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "engines/tensor_shape.h"

namespace executorch_tensorrt {
namespace {

using executorch::aten::SizesType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::EValue;

Status engine_error(const std::string& method, const std::string& what, Error error) {
  return {StatusCode::kInternal,
          "cpu engine, method '" + method + "': " + what + ": " + executorch::runtime::to_string(error)};
}

}  // namespace

CpuContext::BoundTensor::BoundTensor(ScalarType type, std::size_t rank)
    : dtype(type), sizes(rank), dim_order(rank), strides(rank) {
  std::iota(dim_order.begin(), dim_order.end(), executorch::aten::DimOrderType{0});
}

void CpuContext::BoundTensor::remake() {
  // Row-major, as every tensor that crosses the border of a delegate.
  executorch::aten::StridesType stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max(sizes[d], SizesType{1});
  }
  impl.emplace(static_cast<executorch::aten::ScalarType>(dtype), static_cast<ssize_t>(sizes.size()), sizes.data(), data,
               dim_order.data(), strides.data(), executorch::aten::TensorShapeDynamism::DYNAMIC_BOUND);
  changed = true;
}

CpuContext::CpuContext(std::string method, PlannedMemory& memory, const EngineMetadata& metadata, bool collect_layers)
    : name_(std::move(method)),
      metadata_(metadata),
      planned_(memory.arenas()),
      memory_manager_(&method_allocator_, &planned_, &temp_allocator_),
      tracer_(collect_layers ? std::make_unique<LayerTracer>() : nullptr),
      outputs_(metadata.outputs.size()),
      input_shapes_(metadata.inputs.size()),
      output_shapes_(metadata.outputs.size()) {
  const ProfileTable& profiles = *metadata.record->profiles;
  for (std::size_t i = 0; i < metadata.inputs.size(); ++i) {
    input_names_.push_back(metadata.inputs[i].name);
    inputs_.push_back(std::make_unique<BoundTensor>(metadata.inputs[i].dtype, profiles.ranges(0, i).size()));
  }
}

Result<std::unique_ptr<ExecutionContext>> CpuContext::create(const executorch::runtime::Program& program,
                                                             const std::string& method, PlannedMemory& memory,
                                                             const EngineMetadata& metadata, bool collect_layers) {
  if (Status status = memory.allocate(); !status.ok()) {
    return status;
  }
  std::unique_ptr<CpuContext> context(new CpuContext(method, memory, metadata, collect_layers));
  if (Status status = context->load(program); !status.ok()) {
    return status;
  }
  return std::unique_ptr<ExecutionContext>(std::move(context));
}

Status CpuContext::load(const executorch::runtime::Program& program) {
  // The profiles' methods hold the same weights: XNNPACK packs them once for all of them.
  executorch::runtime::BackendOptions<1> xnnpack;
  executorch::runtime::LoadBackendOptionsMap options;
  Error error = xnnpack.set_option("weight_cache_enabled", true);
  if (error == Error::Ok) {
    error = options.set_options("XnnpackBackend", xnnpack.view());
  }
  if (error != Error::Ok) {
    return engine_error(name_, "does not take its options", error);
  }
  auto method = program.load_method(name_.c_str(), &memory_manager_, tracer_.get(), nullptr, &options);
  if (!method.ok() && method.error() == Error::OperatorMissing) {
    return {StatusCode::kNotSupported, "the engine's method '" + name_ +
                                           "' has an operator without a kernel in this process, which ExecuTorch's log "
                                           "names: load a library that has one, or export the model without it"};
  }
  if (!method.ok()) {
    return invalid_program("the engine's method '" + name_ + "' does not load (" +
                           executorch::runtime::to_string(method.error()) +
                           "): it is damaged, or of another ExecuTorch; export or copy it again");
  }
  method_.emplace(std::move(*method));
  return {};
}

// An output that is said to be written in place and is not would be written to no memory at all.
Status CpuContext::check_aliases(std::size_t input) const {
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    if (metadata_.outputs[o].aliased_input != input) {
      continue;
    }
    const EValue& output = method_->get_output(o);
    if (!output.isTensor() || output.toTensor().const_data_ptr() != inputs_[input]->data) {
      return invalid_program("the engine's method '" + name_ + "' does not write output '" + metadata_.outputs[o].name +
                             "' in place of input '" + input_names_[input] +
                             "', as its metadata says: it is damaged; export or copy it again");
    }
  }
  return {};
}

Status CpuContext::set_input_shape(std::size_t input, const Shape& shape) {
  BoundTensor& in = *inputs_[input];
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    in.sizes[d] = static_cast<SizesType>(shape[d]);
  }
  in.remake();
  input_shapes_[input] = shape;
  return {};
}

Status CpuContext::infer_output_shapes(std::vector<Shape>& outputs) {
  if (Status status = metadata_.record->shapes->infer(input_shapes_, input_names_, output_shapes_); !status.ok()) {
    return status;
  }
  outputs = output_shapes_;
  return {};
}

Status CpuContext::set_input_address(std::size_t input, const void* data) {
  BoundTensor& in = *inputs_[input];
  in.data = const_cast<void*>(data);
  in.remake();
  return {};
}

Status CpuContext::set_output_address(std::size_t output, void* data, std::size_t) {
  if (metadata_.outputs[output].aliased_input) {
    return {};  // the input's memory is the output's
  }
  // The method's own output tensor may grow to what it was planned for, whatever memory it is given. One of ours takes
  // its place, whose bound is the shape inferred for this run: an engine that contradicts its metadata fails instead of
  // writing past the caller's memory. ExecuTorch has no call for that.
  auto& value = const_cast<EValue&>(method_->get_output(output));
  const Shape& shape = output_shapes_[output];
  if (!value.isTensor() || static_cast<std::size_t>(value.toTensor().dim()) != shape.rank()) {
    return engine_error(name_,
                        "output '" + metadata_.outputs[output].name + "' has not the rank of " + to_string(shape),
                        Error::InvalidProgram);
  }
  auto bound = std::make_unique<BoundTensor>(metadata_.outputs[output].dtype, shape.rank());
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    bound->sizes[d] = static_cast<SizesType>(shape[d]);
  }
  bound->data = data;
  bound->remake();
  value = EValue(Tensor(&*bound->impl));
  outputs_[output] = std::move(bound);
  return {};
}

Status CpuContext::bind_changed_inputs() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]->changed) {
      continue;
    }
    const Error error = method_->set_input(EValue(Tensor(&*inputs_[i]->impl)), i);
    if (error != Error::Ok) {
      return engine_error(name_, "input '" + input_names_[i] + "' does not take " + to_string(input_shapes_[i]), error);
    }
    if (Status status = check_aliases(i); !status.ok()) {
      return status;
    }
    inputs_[i]->changed = false;
  }
  return {};
}

Status CpuContext::check_output_shapes() const {
  for (std::size_t o = 0; o < output_shapes_.size(); ++o) {
    const Tensor& got = method_->get_output(o).toTensor();
    if (!has_shape(got, output_shapes_[o])) {
      return {StatusCode::kInternal, "cpu engine, method '" + name_ + "': output '" + metadata_.outputs[o].name +
                                         "' came out as " + to_string(make_shape(got.sizes())) + ", inferred was " +
                                         to_string(output_shapes_[o])};
    }
  }
  return {};
}

Status CpuContext::enqueue(void*, bool collect_layers) {
  if (Status status = bind_changed_inputs(); !status.ok()) {
    return status;
  }
  if (tracer_) {
    layers_.clear();
    tracer_->collect_into(collect_layers ? &layers_ : nullptr);
  }
  const Error error = method_->execute();
  return error == Error::Ok ? check_output_shapes() : engine_error(name_, "failed", error);
}

Status CpuContext::take_layers(LayerRecords& layers) {
  layers.insert(layers.end(), std::make_move_iterator(layers_.begin()), std::make_move_iterator(layers_.end()));
  layers_.clear();
  return {};
}

}  // namespace executorch_tensorrt
