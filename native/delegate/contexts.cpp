#include "delegate/contexts.h"

#include <utility>

namespace executorch_tensorrt {

Status BoundContext::set_activation_memory(const ActivationMemory& memory) {
  if (activation_memory_ == memory.data) {
    return {};
  }
  has_run_ = false;
  activation_memory_ = nullptr;
  Status status = context_->set_activation_memory(memory);
  if (status.ok()) {
    activation_memory_ = memory.data;
  }
  return status;
}

Status BoundContext::set_input_shapes(const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (is_inferred_ && shapes[i] == shapes_[i]) {
      continue;
    }
    // Shapes that were set in part do not fit what was inferred before.
    is_inferred_ = has_run_ = false;
    if (Status status = context_->set_input_shape(i, shapes[i]); !status.ok()) {
      return status;
    }
    shapes_[i] = shapes[i];
  }
  if (is_inferred_) {
    return {};
  }
  for (Output& output : outputs_) {
    output.is_set = false;
  }
  if (Status status = context_->infer_output_shapes(output_shapes_); !status.ok()) {
    return status;
  }
  is_inferred_ = true;
  return {};
}

Status BoundContext::enqueue(void* stream, bool collect_layers) {
  has_run_ = false;
  Status status = context_->enqueue(stream, collect_layers);
  has_run_ = status.ok();
  return status;
}

Status BoundContext::set_input_address(std::size_t input, const void* data) {
  if (input_addresses_[input] == data && data != nullptr) {
    return {};
  }
  input_addresses_[input] = nullptr;
  if (Status status = context_->set_input_address(input, data); !status.ok()) {
    return status;
  }
  input_addresses_[input] = data;
  return {};
}

Status BoundContext::set_output_address(std::size_t output, void* data, std::size_t nbytes) {
  Output& out = outputs_[output];
  if (out.is_set && out.data == data && out.nbytes == nbytes) {
    return {};
  }
  out.is_set = false;
  if (Status status = context_->set_output_address(output, data, nbytes); !status.ok()) {
    return status;
  }
  out = {data, nbytes, true};
  return {};
}

Contexts::Contexts(Engine& engine, std::size_t num_inputs, std::size_t num_outputs, const Cuda* cuda)
    : engine_(engine),
      num_inputs_(num_inputs),
      num_outputs_(num_outputs),
      cuda_(cuda),
      contexts_(engine.profiles().num_profiles()) {}

BoundContext* Contexts::find(std::size_t profile) const {
  BoundContext* const context = contexts_[profile].get();
  return context != nullptr && context->activation_memory_ == activation_memory().data ? context : nullptr;
}

Result<BoundContext*> Contexts::make(std::size_t profile) {
  std::unique_ptr<BoundContext>& context = contexts_[profile];
  if (!context) {
    const Result<std::size_t> size = engine_.activation_size(profile);
    if (Status status = size.ok() ? need_activation_memory(*size) : size.status(); !status.ok()) {
      return status;
    }
    auto made = engine_.create_context(profile, collects_layers_, activation_memory());
    if (!made.ok()) {
      return made.status();
    }
    context = std::make_unique<BoundContext>(std::move(*made), activation_memory(), num_inputs_, num_outputs_);
  }
  if (Status status = context->set_activation_memory(activation_memory()); !status.ok()) {
    return status;
  }
  return context.get();
}

// All share the block of the profile that needs most of those in use.
Status Contexts::need_activation_memory(std::size_t nbytes) {
  if (cuda_ == nullptr || nbytes == 0 || (activations_ && nbytes <= activations_->size())) {
    return {};
  }
  // The old block stays first, so that the new one is at another address.
  auto larger = std::make_unique<DeviceBuffer>(*cuda_);
  if (Status status = larger->grow(nbytes, "activations"); !status.ok()) {
    return status;
  }
  activations_.swap(larger);
  if (std::exchange(keeps_activations_, false)) {
    kept_activations_.push_back(std::move(larger));  // it has room
  }
  return {};
}

void Contexts::collect_layers(bool collect) {
  collects_layers_ = collect;
  for (std::size_t profile = 0; profile < contexts_.size(); ++profile) {
    end(profile);
  }
}

void Contexts::end(std::size_t profile) noexcept {
  std::unique_ptr<BoundContext>& context = contexts_[profile];
  if (context && context->is_captured_) {
    kept_.push_back(std::move(context));  // it has room
  }
  context.reset();
}

void Contexts::keep_for_graph(BoundContext& context) {
  kept_.reserve(kept_.size() + contexts_.size());
  kept_activations_.reserve(kept_activations_.size() + 1);
  keeps_activations_ = activations_ != nullptr;
  context.is_captured_ = true;
}

}  // namespace executorch_tensorrt
