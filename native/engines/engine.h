// What the delegate needs of an engine, whatever runs it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/layer_record.h"
#include "core/metadata.h"
#include "core/profile_table.h"
#include "core/shape.h"
#include "core/status.h"

namespace executorch_tensorrt {

// The block that contexts of one engine work in, one at a time. Null where the engine asks for none.
struct ActivationMemory {
  void* data = nullptr;
  std::size_t nbytes = 0;
};

// One optimization profile of one engine, ready to run. Shapes and addresses stay set until they are set again, so a
// steady call is one enqueue().
class ExecutionContext {
 public:
  virtual ~ExecutionContext() = default;

  // In place of what it was made with, and as large as its profile needs.
  virtual Status set_activation_memory(const ActivationMemory&) { return {}; }

  // The profile accepts the shape: the caller has validated it.
  virtual Status set_input_shape(std::size_t input, const Shape& shape) = 0;

  // The output shapes for the input shapes that are set.
  virtual Status infer_output_shapes(std::vector<Shape>& outputs) = 0;

  virtual Status set_input_address(std::size_t input, const void* data) = 0;

  // `nbytes` is what the inferred shape of the output takes. Null for an output that is empty, or that the program does
  // not take: the engine writes it to memory of its own.
  virtual Status set_output_address(std::size_t output, void* data, std::size_t nbytes) = 0;

  // On a device, puts the work on `stream`, a cudaStream_t, and returns; on the host, does it. Layers are timed when
  // `collect_layers` is given and the context was made to collect them. A context that failed here is not used again.
  virtual Status enqueue(void* stream, bool collect_layers) = 0;

  // Appends one record per layer of the last enqueue(), whose work is done. Device times begin with 0, laid end to end.
  virtual Status take_layers(LayerRecords& layers) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string_view kind() const = 0;

  // What the engine itself reports, inputs in binding order.
  virtual const ProfileTable& profiles() const = 0;

  // The element types that the engine itself reports, inputs then outputs in binding order; empty if it reports none.
  virtual std::vector<ScalarType> binding_types() const { return {}; }

  // The CUDA device whose memory it works on, current whenever it is called; none for an engine on the host.
  virtual std::optional<int> device() const { return std::nullopt; }

  // Whether it has int32 where the blob has int64, because its TensorRT knows no int64.
  virtual bool narrows_int64() const { return false; }

  // How many bytes of activation memory a context of the profile works in; 0 where the engine has none, or has its own.
  virtual Result<std::size_t> activation_size(std::size_t) const { return std::size_t{0}; }

  // Its work, if it takes any, is done when this returns. Contexts must not outlive the engine.
  virtual Result<std::unique_ptr<ExecutionContext>> create_context(std::size_t profile, bool collect_layers,
                                                                   const ActivationMemory& memory) = 0;
};

// What an engine is loaded from. The bytes outlive the engine.
struct EngineSource {
  const void* data = nullptr;
  std::size_t size = 0;
  const EngineMetadata* metadata = nullptr;
};

}  // namespace executorch_tensorrt
