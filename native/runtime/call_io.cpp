#include "runtime/call_io.h"

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
    if (engine_.owned[i] != nullptr) {
      shapes[i] = engine_.owned[i]->shape;
      continue;
    }
    const EValue& value = *args_[*metadata_.inputs[i].argument];
    if (Status status = check_argument(value, metadata_.inputs[i], "input"); !status.ok()) {
      return status;
    }
    shapes[i] = make_shape(value.toTensor().sizes());
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
  if (const EngineBuffer* owned = engine_.owned[input]; owned != nullptr) {
    return {owned->data(), owned->nbytes, false};
  }
  return memory_of(tensor(*metadata_.inputs[input].argument));
}

CallerMemory CallIo::caller_memory(const Memory& memory, const Binding& binding) const {
  return {memory.data, memory.nbytes, memory.on_device, engine_.narrows_int64 && binding.dtype == ScalarType::kInt64};
}

Status CallIo::place_inputs() {
  engine_.addresses.clear();
  for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
    const Binding& input = metadata_.inputs[i];
    const Memory memory = input_memory(i);
    if (memory.data == nullptr && memory.nbytes > 0) {
      return invalid_argument("input '" + input.name + "' has no memory: set it before the call");
    }
    const void* address = memory.data;
    if (engine_.device) {
      const Result<void*> on_device = engine_.device->input(i, input.name, caller_memory(memory, input));
      if (!on_device.ok()) {
        return on_device.status();
      }
      address = *on_device;
    }
    engine_.addresses.push_back(address);
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

Status CallIo::place_outputs(const std::vector<Shape>& shapes, const std::vector<Shape>& input_shapes) {
  engine_.output_sizes.clear();
  if (Status status = resize_outputs(shapes); !status.ok()) {
    return status;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const Binding& output = metadata_.outputs[o];
    const Result<Memory> own = output_memory(o, shapes[o]);
    if (!own.ok()) {
      return own.status();
    }
    Memory memory = *own;
    if (output.aliased_input) {
      if (Status status = check_alias(o, shapes[o], input_shapes); !status.ok()) {
        return status;
      }
      memory = input_memory(*output.aliased_input);
    }
    if (engine_.device) {
      const CallerMemory caller = caller_memory(memory, output);
      const Result<void*> on_device = output.aliased_input ? engine_.device->input_address(*output.aliased_input)
                                                           : engine_.device->output(o, output.name, caller);
      if (!on_device.ok()) {
        return on_device.status();
      }
      memory.data = *on_device;
      memory.nbytes = caller.engine_nbytes();
    }
    engine_.addresses.push_back(memory.data);
    engine_.output_sizes.push_back(memory.nbytes);
  }
  return {};
}

Status CallIo::fix_addresses() {
  const std::size_t num_inputs = metadata_.inputs.size();
  std::size_t total = 0;
  for (std::size_t i = 0; i < num_inputs; ++i) {
    total += caller_memory(input_memory(i), metadata_.inputs[i]).engine_nbytes();
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    total += engine_.output_sizes[o];
  }
  if (total > kMostFixedBytes || !metadata_.aliased_io.empty()) {
    return {};
  }
  for (std::size_t i = 0; i < num_inputs; ++i) {
    const std::size_t nbytes = caller_memory(input_memory(i), metadata_.inputs[i]).engine_nbytes();
    const Result<void*> fixed = engine_.device->fix_input(i, metadata_.inputs[i].name, nbytes);
    if (!fixed.ok()) {
      return fixed.status();
    }
    engine_.addresses[i] = *fixed;
  }
  for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
    const void*& address = engine_.addresses[num_inputs + o];
    const Result<void*> fixed =
        engine_.device->fix_output(o, metadata_.outputs[o].name, const_cast<void*>(address), engine_.output_sizes[o]);
    if (!fixed.ok()) {
      return fixed.status();
    }
    address = *fixed;
  }
  return {};
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

Status CallIo::bring_back() {
  for (const Binding& output : metadata_.outputs) {
    if (!output.aliased_input) {
      continue;
    }
    const Memory updated = input_memory(*output.aliased_input);
    if (engine_.device) {
      engine_.device->updates_input(*output.aliased_input, caller_memory(updated, output));
    }
    if (!output.argument) {
      continue;
    }
    const Memory own = memory_of(tensor(*output.argument));
    if (own.data == updated.data || own.nbytes == 0) {
      continue;
    }
    if (!engine_.device) {
      std::memcpy(own.data, updated.data, own.nbytes);
      continue;
    }
    const void* from = engine_.device->input_address(*output.aliased_input);
    if (Status status = engine_.device->copy(caller_memory(own, output), from); !status.ok()) {
      return status;
    }
  }
  return engine_.device ? engine_.device->copy_back() : Status();
}

}  // namespace executorch_tensorrt
