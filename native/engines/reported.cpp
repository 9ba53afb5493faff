#include "engines/reported.h"

#include <algorithm>
#include <string>

#include "core/text.h"

namespace executorch_tensorrt {

namespace {

Status check_aliased_types(const EngineMetadata& metadata, bool narrows_int64) {
  for (const Binding& output : metadata.outputs) {
    if (!output.aliased_input) {
      continue;
    }
    const Binding& input = metadata.inputs[*output.aliased_input];
    if (narrows_int64 && output.dtype == ScalarType::kInt64) {
      return invalid_program("output '" + output.name +
                             "' is written in place of an input: got dtype int64, which this TensorRT does not have");
    }
    if (output.dtype != input.dtype) {
      return invalid_program("output '" + output.name + "' is written in place of input '" + input.name +
                             "' of another dtype: got " + std::string(to_string(output.dtype)) + ", allowed " +
                             std::string(to_string(input.dtype)));
    }
  }
  return {};
}

Status check_owned_types(const EngineMetadata& metadata) {
  const std::vector<OwnedBuffer> none;
  for (const OwnedBuffer& owned : metadata.record ? metadata.record->state : none) {
    const ScalarType input = metadata.inputs[owned.input].dtype;
    const ScalarType output = owned.output ? metadata.outputs[*owned.output].dtype : input;
    if (output != input) {
      return invalid_program("buffer '" + owned.name + "' has an output of another dtype: got " +
                             std::string(to_string(output)) + ", allowed " + std::string(to_string(input)));
    }
  }
  return {};
}

// On a device, memory for what the program does not take is made by the delegate, by its size.
Status check_sizes(const EngineMetadata& metadata) {
  for (const Binding& output : metadata.outputs) {
    if (!output.argument && !output.aliased_input && element_size(output.dtype) == 0) {
      return invalid_program("output " + quoted(output.name) +
                             " is no argument of the program, and neither the program nor the engine says an element "
                             "type whose size is known here, so it gets no memory; build the engine with an output of "
                             "float32, int32 or another type of PyTorch's");
    }
  }
  return {};
}

}  // namespace

Status take_over_reported(const Engine& engine, EngineMetadata& metadata) {
  const ProfileTable& reported = engine.profiles();
  if (reported.num_inputs() != metadata.inputs.size()) {
    return invalid_program("the engine reports " + std::to_string(reported.num_inputs()) + " inputs, the blob names " +
                           std::to_string(metadata.inputs.size()));
  }
  if (metadata.record && metadata.record->profiles) {
    if (Status status = check_reported(*metadata.record->profiles, reported); !status.ok()) {
      return status;
    }
  }
  std::vector<Binding*> bindings;
  for (std::vector<Binding>* side : {&metadata.inputs, &metadata.outputs}) {
    for (Binding& binding : *side) {
      bindings.push_back(&binding);
    }
  }
  const std::vector<ScalarType> types = engine.binding_types();
  for (std::size_t k = 0; k < std::min(types.size(), bindings.size()); ++k) {
    Binding& binding = *bindings[k];
    if (binding.dtype == ScalarType::kUnknown) {
      binding.dtype = types[k];
    } else if (engine.narrows_int64() && types[k] == ScalarType::kInt32 && binding.dtype == ScalarType::kInt64) {
      continue;
    } else if (types[k] != ScalarType::kUnknown && types[k] != binding.dtype) {
      return invalid_program("binding '" + binding.name + "': the engine reports dtype " +
                             std::string(to_string(types[k])) + ", the program has " +
                             std::string(to_string(binding.dtype)));
    }
  }
  for (const Status& status : {check_aliased_types(metadata, engine.narrows_int64()), check_owned_types(metadata),
                               engine.device() ? check_sizes(metadata) : Status()}) {
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace executorch_tensorrt
