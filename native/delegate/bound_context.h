// BoundContext: an execution context that remembers what is set, so that nothing is set twice.
#pragma once

#include <memory>
#include <vector>

#include "engines/engine.h"

namespace executorch_tensorrt {

class BoundContext {
 public:
  explicit BoundContext(std::unique_ptr<ExecutionContext> context, std::size_t num_inputs, std::size_t num_outputs)
      : context_(std::move(context)),
        shapes_(num_inputs),
        input_addresses_(num_inputs, nullptr),
        outputs_(num_outputs) {}

  // Sets the shapes that changed and infers the output shapes again if any did.
  Status set_input_shapes(const std::vector<Shape>& shapes);
  const std::vector<Shape>& output_shapes() const { return output_shapes_; }

  Status set_input_address(std::size_t input, const void* data);
  Status set_output_address(std::size_t output, void* data, std::size_t nbytes);

  Status enqueue(void* stream, bool collect_layers);
  // Whether its last call succeeded, with these shapes, which are set.
  bool has_run_with(const std::vector<Shape>& shapes) const { return has_run_ && shapes == shapes_; }
  // It has other memory since.
  void forget_run() { has_run_ = false; }

  // A graph of the caller's uses it from now on.
  void set_captured() { is_captured_ = true; }
  bool is_captured() const { return is_captured_; }

  Status take_layers(LayerRecords& layers) { return context_->take_layers(layers); }

 private:
  struct Output {
    void* data = nullptr;
    std::size_t nbytes = 0;
    bool set = false;  // for the shape that is inferred now
  };

  std::unique_ptr<ExecutionContext> context_;
  std::vector<Shape> shapes_;
  bool inferred_ = false;
  bool has_run_ = false;
  bool is_captured_ = false;
  std::vector<Shape> output_shapes_;
  std::vector<const void*> input_addresses_;
  std::vector<Output> outputs_;
};

}  // namespace executorch_tensorrt
