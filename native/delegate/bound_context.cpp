#include "delegate/bound_context.h"

namespace executorch_tensorrt {

Status BoundContext::set_input_shapes(const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (inferred_ && shapes[i] == shapes_[i]) {
      continue;
    }
    // Shapes that were set in part do not fit what was inferred before.
    inferred_ = has_run_ = false;
    if (Status status = context_->set_input_shape(i, shapes[i]); !status.ok()) {
      return status;
    }
    shapes_[i] = shapes[i];
  }
  if (inferred_) {
    return {};
  }
  for (Output& output : outputs_) {
    output.set = false;
  }
  if (Status status = context_->infer_output_shapes(output_shapes_); !status.ok()) {
    return status;
  }
  inferred_ = true;
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
  if (out.set && out.data == data && out.nbytes == nbytes) {
    return {};
  }
  out.set = false;
  if (Status status = context_->set_output_address(output, data, nbytes); !status.ok()) {
    return status;
  }
  out = {data, nbytes, true};
  return {};
}

}  // namespace executorch_tensorrt
