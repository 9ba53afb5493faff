#include "delegate/call_io.h"

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>

#include <cstring>
#include <string>

#include "engines/tensor_shape.h"

namespace executorch_tensorrt {
namespace {

using executorch::aten::Tensor;
using executorch::runtime::EValue;

// Copying more within the device takes longer than a replay saves.
constexpr std::size_t kMostFixedBytes = 4u << 20;

// A tensor argument that fits its binding, or why not.
Status check_argument(const EValue& value, const Binding& binding, const char* side) {
  const auto name = [&] { return std::string(side) + " '" + binding.name + "'"; };
  if (!value.isTensor()) {
    return invalid_argument(name() + " is no tensor");
  }
  const Tensor& tensor = value.toTensor();
  const auto dtype = static_cast<ScalarType>(tensor.scalar_type());
  if (binding.dtype != ScalarType::kUnknown && dtype != binding.dtype) {
    return invalid_argument(name() + ": got dtype " + std::string(to_string(dtype)) + ", allowed " +
                            std::string(to_string(binding.dtype)));
  }
  if (!executorch::runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size())) {
    return invalid_argument(name() +
                            ": got a dim order that is not contiguous (such as channels_last), allowed is "
                            "row-major");
  }
  return {};
}

}  // namespace

Status CallIo::collect_input_shapes(std::vector<Shape>& shapes) const {
  for (Shape& shape : shapes) {
    shape.resize(0);
  }
  if (args_.size() != metadata_.num_arguments) {
    return invalid_argument("got " + std::to_string(args_.size()) + " arguments, allowed " +
                            std::to_string(metadata_.num_arguments) + " (inputs, then outputs)");
  }
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    if (engine_.owned_inputs[i] != nullptr) {
      shapes[i] = engine_.owned_inputs[i]->shape;
      continue;
    }
    const EValue& value = *args_[*metadata_.inputs[i].argument];
    if (Status status = check_argument(value, metadata_.inputs[i], "input"); !status.ok()) {
      return status;
    }
    set_dims(shapes[i], value.toTensor().sizes());
  }
  for (const Binding& output : metadata_.outputs) {
    if (!output.argument) {
      continue;
    }
    if (Status status = check_argument(*args_[*output.argument], output, "output"); !status.ok()) {
      return status;
    }
  }
  return {};
}

CallIo::Memory CallIo::memory_of(const Tensor& tensor) const {
  return {tensor.mutable_data_ptr(), tensor.nbytes(), !tensor.device().is_cpu()};
}

CallIo::Memory CallIo::input_memory(std::size_t input) const {
  if (const EngineBuffer* owned = engine_.owned_inputs[input]; owned != nullptr) {
    return {owned->memory->value(), owned->nbytes, false};
  }
  return memory_of(tensor(*metadata_.inputs[input].argument));
}

CallerMemory CallIo::caller_memory(const Memory& memory, const Binding& binding) const {
  return {memory.data, memory.nbytes, memory.on_device, engine_.narrows_int64 && binding.dtype == ScalarType::kInt64};
}

// What the engine has of an argument. Buffers that it owns are as it has them.
std::size_t CallIo::engine_nbytes(std::size_t input) const {
  return caller_memory(input_memory(input), metadata_.inputs[input]).engine_nbytes();
}

Status CallIo::check_captured() const {
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    // An engine that shares the buffer may write its next value there.
    if (const EngineBuffer* owned = engine_.owned_inputs[i]; owned != nullptr && owned->memory->next() != nullptr) {
      return invalid_argument("the caller's stream is being captured into a CUDA graph: got buffer '" +
                              metadata_.inputs[i].name +
                              "', which lies at two addresses in turn, allowed one address; end the capture before the "
                              "call, or let use_cuda_graphs replay it");
    }
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const Binding& output = metadata_.outputs[o];
    const bool moves = output.aliased_input && output.argument &&
                       memory_of(tensor(*output.argument)).data != input_memory(*output.aliased_input).data;
    if (moves) {
      return invalid_argument("the caller's stream is being captured into a CUDA graph: got output '" + output.name +
                              "', the next value of an input in other memory, allowed none; end the capture before "
                              "the call, or let use_cuda_graphs replay it");
    }
  }
  return {};
}

Result<void*> CallIo::place_input(std::size_t i, std::optional<DeviceCall>& device) {
  const Binding& input = metadata_.inputs[i];
  const Memory memory = input_memory(i);
  if (memory.data == nullptr && memory.nbytes > 0) {
    return invalid_argument("input '" + input.name + "' has no memory: set it before the call");
  }
  if (!device || engine_.owned_inputs[i] != nullptr) {
    return memory.data;
  }
  return device->input(i, input.name, caller_memory(memory, input));
}

Status CallIo::place_inputs(std::optional<DeviceCall>& device) {
  engine_.addresses.clear();
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    const Result<void*> address = place_input(i, device);
    if (!address.ok()) {
      return address.status();
    }
    engine_.addresses.push_back(*address);
  }
  return {};
}

Status CallIo::resize_outputs(const std::vector<Shape>& shapes) {
  for (std::size_t o = 0; o < shapes.size(); ++o) {
    const Binding& output = metadata_.outputs[o];
    if (output.argument && !resized_.resize(tensor(*output.argument), shapes[o])) {
      return invalid_argument("output '" + output.name + "': " + to_string(shapes[o]) +
                              " does not fit the memory that the program planned for it");
    }
  }
  return {};
}

Status CallIo::check_alias(std::size_t o, const Shape& shape, const std::vector<Shape>& input_shapes) const {
  const Binding& output = metadata_.outputs[o];
  const std::size_t input = *output.aliased_input;
  if (shape != input_shapes[input] ||
      (output.argument && tensor(*output.argument).nbytes() != input_memory(input).nbytes)) {
    return invalid_argument("output '" + output.name + "' is written in place of an input of another size: got " +
                            to_string(shape) + ", allowed " + to_string(input_shapes[input]));
  }
  return {};
}

Result<CallIo::Memory> CallIo::output_memory(std::size_t o, const Shape& shape) const {
  const Binding& output = metadata_.outputs[o];
  Memory memory;
  if (output.argument) {
    memory = memory_of(tensor(*output.argument));
    if (memory.data == nullptr && memory.nbytes > 0) {
      return invalid_argument("output '" + output.name +
                              "' has no memory: set it before the call (Module::set_output)");
    }
  } else if (!size_in_bytes(shape, element_size(output.dtype), memory.nbytes)) {
    return invalid_argument("output '" + output.name + "': no memory has the size of " + to_string(shape));
  }
  return memory;
}

Result<CallIo::Memory> CallIo::place_output(std::size_t o, const Shape& shape, const std::vector<Shape>& input_shapes,
                                            std::optional<DeviceCall>& device) {
  const Binding& output = metadata_.outputs[o];
  if (const EngineBuffer* owned = engine_.owned_outputs[o]; owned != nullptr) {
    if (shape != owned->shape) {
      return invalid_argument("output '" + output.name + "' is a buffer's next value of another shape: got " +
                              to_string(shape) + ", allowed " + to_string(owned->shape));
    }
    return Memory{owned->memory->next(), owned->nbytes, false};
  }
  Result<Memory> memory = output_memory(o, shape);
  if (!memory.ok()) {
    return memory;
  }
  if (output.aliased_input) {
    if (Status status = check_alias(o, shape, input_shapes); !status.ok()) {
      return status;
    }
    void* const address = const_cast<void*>(engine_.addresses[*output.aliased_input]);
    return Memory{address, input_memory(*output.aliased_input).nbytes, false};
  }
  if (device) {
    const CallerMemory caller = caller_memory(*memory, output);
    const Result<void*> on_device = device->output(o, output.name, caller);
    if (!on_device.ok()) {
      return on_device.status();
    }
    return Memory{*on_device, caller.engine_nbytes(), true};
  }
  return memory;
}

Status CallIo::place_outputs(const std::vector<Shape>& shapes, const std::vector<Shape>& input_shapes,
                             std::optional<DeviceCall>& device) {
  engine_.output_sizes.clear();
  if (Status status = resize_outputs(shapes); !status.ok()) {
    return status;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const Result<Memory> memory = place_output(o, shapes[o], input_shapes, device);
    if (!memory.ok()) {
      return memory.status();
    }
    engine_.addresses.push_back(memory->data);
    engine_.output_sizes.push_back(memory->nbytes);
  }
  return {};
}

Result<bool> CallIo::fix_addresses(DeviceCall& device) {
  const std::size_t num_inputs = metadata_.inputs.size();
  std::size_t total = 0;
  for (std::size_t i = 0; i < num_inputs; ++i) {
    total += engine_.owned_inputs[i] == nullptr ? engine_nbytes(i) : 0;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    total += engine_.owned_outputs[o] == nullptr ? engine_.output_sizes[o] : 0;
  }
  if (total > kMostFixedBytes || !metadata_.aliased_io.empty()) {
    return false;
  }
  for (std::size_t i = 0; i < num_inputs; ++i) {
    if (engine_.owned_inputs[i] != nullptr) {
      continue;
    }
    const Result<void*> fixed = device.fix_input(i, metadata_.inputs[i].name, engine_nbytes(i));
    if (!fixed.ok()) {
      return fixed.status();
    }
    engine_.addresses[i] = *fixed;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    if (engine_.owned_outputs[o] != nullptr) {
      continue;
    }
    const void*& address = engine_.addresses[num_inputs + o];
    const Result<void*> fixed =
        device.fix_output(o, metadata_.outputs[o].name, const_cast<void*>(address), engine_.output_sizes[o]);
    if (!fixed.ok()) {
      return fixed.status();
    }
    address = *fixed;
  }
  return true;
}

Status CallIo::bind(BoundContext& context) const {
  const std::size_t num_inputs = metadata_.inputs.size();
  for (std::size_t i = 0; i < num_inputs; ++i) {
    if (Status status = context.set_input_address(i, engine_.addresses[i]); !status.ok()) {
      return status;
    }
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    void* const data = const_cast<void*>(engine_.addresses[num_inputs + o]);
    if (Status status = context.set_output_address(o, data, engine_.output_sizes[o]); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status CallIo::bring_back(std::optional<DeviceCall>& device) {
  for (const Binding& output : metadata_.outputs) {
    if (!output.aliased_input) {
      continue;
    }
    const std::size_t input = *output.aliased_input;
    const Memory updated = input_memory(input);
    if (device && engine_.owned_inputs[input] == nullptr) {
      device->updates_input(input, caller_memory(updated, output));
    }
    if (!output.argument) {
      continue;
    }
    const Memory own = memory_of(tensor(*output.argument));
    if (own.data == updated.data || own.nbytes == 0) {
      continue;
    }
    if (!device) {
      std::memcpy(own.data, updated.data, own.nbytes);
      continue;
    }
    if (Status status = device->copy(caller_memory(own, output), engine_.addresses[input]); !status.ok()) {
      return status;
    }
  }
  return device ? device->copy_back() : Status();
}

}  // namespace executorch_tensorrt
