// CallIo: the arguments of one call, from the check of what they are to the outputs in the caller's memory.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <optional>
#include <vector>

#include "core/metadata.h"
#include "delegate/contexts.h"
#include "delegate/engine_buffers.h"
#include "delegate/resized_outputs.h"
#include "device/device_call.h"

namespace executorch_tensorrt {

// What the calls of one engine have in common.
struct EngineIo {
  const EngineMetadata& metadata;
  std::vector<EngineBuffer*> owned_inputs{};   // null where the input is an argument
  std::vector<EngineBuffer*> owned_outputs{};  // those that are not written in place; null elsewhere
  bool narrows_int64 = false;
  // Of the call under way: inputs, then outputs.
  std::vector<const void*> addresses{};
  std::vector<std::size_t> output_sizes{};
};

class CallIo {
 public:
  using Args = executorch::runtime::Span<executorch::runtime::EValue*>;

  CallIo(EngineIo& engine, Args args) : engine_(engine), metadata_(engine.metadata), args_(args) {}

  // Checks number, kind, dtype and dim order of all arguments; writes nothing.
  Status collect_input_shapes(std::vector<Shape>& shapes) const;

  // That nothing of this call moves when it is over: neither buffers nor outputs in two places.
  Status check_captured() const;

  // Those that follow have the call on the device; none for an engine on the host.

  // Sees where inputs lie, and stages them.
  Status place_inputs(std::optional<DeviceCall>& device);

  // Gives the caller's outputs their shapes, and sees where they lie. They get their own shapes back at the end, unless
  // they are kept.
  Status place_outputs(const std::vector<Shape>& shapes, const std::vector<Shape>& input_shapes,
                       std::optional<DeviceCall>& device);

  // Has the engine work on memory that stays where it is from call to call. False where the call moves too much.
  Result<bool> fix_addresses(DeviceCall& device);

  // Where all of them lie is what the context works on.
  Status bind(BoundContext& context) const;

  // To the caller: outputs that were staged, and what the engine wrote in place of inputs.
  Status bring_back(std::optional<DeviceCall>& device);

  void keep_shapes() { resized_.keep(); }

 private:
  struct Memory {
    void* data = nullptr;
    std::size_t nbytes = 0;
    bool on_device = false;
  };

  const executorch::aten::Tensor& tensor(std::size_t argument) const { return args_[argument]->toTensor(); }
  Memory memory_of(const executorch::aten::Tensor& tensor) const;
  Memory input_memory(std::size_t input) const;
  CallerMemory caller_memory(const Memory& memory, const Binding& binding) const;
  std::size_t engine_nbytes(std::size_t input) const;
  Result<void*> place_input(std::size_t input, std::optional<DeviceCall>& device);
  Status resize_outputs(const std::vector<Shape>& shapes);
  Status check_alias(std::size_t output, const Shape& shape, const std::vector<Shape>& input_shapes) const;
  Result<Memory> output_memory(std::size_t output, const Shape& shape) const;
  Result<Memory> place_output(std::size_t output, const Shape& shape, const std::vector<Shape>& input_shapes,
                              std::optional<DeviceCall>& device);

  EngineIo& engine_;
  const EngineMetadata& metadata_;
  Args args_;
  ResizedOutputs resized_;
};

}  // namespace executorch_tensorrt
