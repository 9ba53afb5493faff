// EngineCalls: calls that the caller captures into a graph of his own.
#include <utility>

#include "delegate/engine_calls.h"

namespace executorch_tensorrt {

// What the caller's graph does, it does whenever it runs: all that it needs has to be there now, and to stay.
Status EngineCalls::check_captured(const EngineCall& call) {
  const std::string captured = "the caller's stream is being captured into a CUDA graph: ";
  if (collects_layers_) {
    return invalid_argument(captured + "got level layers, allowed the others; trace without layers");
  }
  const std::unique_ptr<BoundContext>& context = contexts_[call.profile];
  if (!context || !context->has_run_with(input_shapes_)) {
    enqueue_next_ = true;
    return invalid_argument(captured + "got shapes that optimization profile " + std::to_string(call.profile) +
                            " was not used with last, allowed those that it was; make one such call before the "
                            "capture");
  }
  return call.io.check_captured();
}

// Until the engine ends: the caller may launch his graph as long.
void EngineCalls::keep_for_caller(EngineCall& call) {
  kept_.reserve(kept_.size() + contexts_.size());
  engine_->keep_memory();
  call.context->set_captured();
}

void EngineCalls::end_context(std::size_t profile) noexcept {
  std::unique_ptr<BoundContext>& context = contexts_[profile];
  if (context && context->is_captured()) {
    kept_.push_back(std::move(context));  // it has room
  }
  context.reset();
}

}  // namespace executorch_tensorrt
