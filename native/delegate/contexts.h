// Contexts: the execution contexts of one engine, one for each optimization profile that was used, over one block of
// activation memory.
#pragma once

#include <memory>
#include <vector>

#include "device/device_memory.h"
#include "device/stream_order.h"
#include "engines/engine.h"

namespace executorch_tensorrt {

// A context that remembers what is set, so that nothing is set twice.
class BoundContext {
 public:
  BoundContext(std::unique_ptr<ExecutionContext> context, const ActivationMemory& memory, std::size_t num_inputs,
               std::size_t num_outputs)
      : context_(std::move(context)),
        activation_memory_(memory.data),
        shapes_(num_inputs),
        input_addresses_(num_inputs, nullptr),
        outputs_(num_outputs) {}

  Status set_activation_memory(const ActivationMemory& memory);

  // Sets the shapes that changed and infers the output shapes again if any did.
  Status set_input_shapes(const std::vector<Shape>& shapes);
  const std::vector<Shape>& output_shapes() const { return output_shapes_; }

  Status set_input_address(std::size_t input, const void* data);
  Status set_output_address(std::size_t output, void* data, std::size_t nbytes);

  Status enqueue(void* stream, bool collect_layers);
  // Whether its last call succeeded, with these shapes and the memory that are set.
  bool has_run_with(const std::vector<Shape>& shapes) const { return has_run_ && shapes == shapes_; }

  Status take_layers(LayerRecords& layers) { return context_->take_layers(layers); }

 private:
  friend class Contexts;
  struct Output {
    void* data = nullptr;
    std::size_t nbytes = 0;
    bool is_set = false;  // for the shape that is inferred now
  };

  std::unique_ptr<ExecutionContext> context_;
  const void* activation_memory_;
  std::vector<Shape> shapes_;
  bool is_inferred_ = false;
  bool has_run_ = false;
  bool is_captured_ = false;  // a graph of the caller's uses it
  std::vector<Shape> output_shapes_;
  std::vector<const void*> input_addresses_;
  std::vector<Output> outputs_;
};

class Contexts {
 public:
  // `engine` outlives them. `cuda` is null for an engine on the host.
  Contexts(Engine& engine, std::size_t num_inputs, std::size_t num_outputs, const Cuda* cuda);

  // No work of the engine is under way for those that follow, and its device is current.

  // The context of a profile, made on first use, with its activation memory. Where that grows, all contexts get the new
  // block before they are used again: what was recorded of their work until then is of the old one.
  Result<BoundContext*> make(std::size_t profile);

  // Contexts collect layers from their beginning or never: all end.
  void collect_layers(bool collect);
  bool collects_layers() const { return collects_layers_; }

  void end(std::size_t profile) noexcept;

  // These at any time.

  // Null unless there is one that can be used as it is.
  BoundContext* find(std::size_t profile) const;

  // A graph of the caller's uses a context from now on: it and the memory stay as long as this.
  void keep_for_graph(BoundContext& context);

  ActivationMemory activation_memory() const {
    return activations_ ? ActivationMemory{activations_->data(), activations_->size()} : ActivationMemory{};
  }

 private:
  Status need_activation_memory(std::size_t nbytes);

  Engine& engine_;
  const std::size_t num_inputs_;
  const std::size_t num_outputs_;
  const Cuda* cuda_;
  bool collects_layers_ = false;
  // Contexts end before the memory that they were given.
  std::unique_ptr<DeviceBuffer> activations_;
  std::vector<std::unique_ptr<DeviceBuffer>> kept_activations_;  // for graphs of the caller's alone
  bool keeps_activations_ = false;                               // the block of now
  std::vector<std::unique_ptr<BoundContext>> contexts_;          // by profile
  std::vector<std::unique_ptr<BoundContext>> kept_;              // for graphs of the caller's alone
};

}  // namespace executorch_tensorrt
