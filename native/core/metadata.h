// The blob's JSON metadata: Torch-TensorRT's keys, and one further key, "executorch_tensorrt", with what is ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/internal.h"
#include "core/profile_table.h"
#include "core/scalar_type.h"
#include "core/shape_program.h"
#include "core/status.h"

namespace executorch_tensorrt {

struct Binding {
  std::string name;
  ScalarType dtype = ScalarType::kUnknown;
  // Its place among the delegate's arguments. Inputs may share one; an output that the program does not take has none,
  // nor has an input that the engine owns.
  std::optional<std::size_t> argument;
  std::optional<std::size_t> aliased_input;  // of an output that the engine writes in place of an input
};

// An output that the engine writes in place of an input.
struct AliasedIo {
  std::string output;
  std::string input;
  std::string kind;
};

// A buffer that the engine owns: the memory of an input that is no argument, and of the output that aliases it.
struct OwnedBuffer {
  std::string name;  // the model's
  std::size_t input = 0;
  std::optional<std::size_t> output;  // in place of an alias: it has the value after a call, in other memory
  std::string initial;                // bytes; empty for zeros
};

// What the exporter of this project adds. Blobs written by Torch-TensorRT have none of it.
struct ExportRecord {
  std::string engine_kind;  // empty for an engine that Torch-TensorRT built: it does not say which TensorRT it is for
  std::string engine_id;
  std::string builder;
  std::string signature;
  std::optional<ProfileTable> profiles;  // absent where they were not declared: only the engine knows them
  std::optional<ShapeProgram> shapes;
  std::vector<OwnedBuffer> state;
};

struct EngineMetadata {
  std::vector<Binding> inputs;    // in binding order
  std::vector<Binding> outputs;   // in binding order
  std::size_t num_arguments = 0;  // of the delegate: inputs, then outputs
  std::vector<AliasedIo> aliased_io;
  bool hardware_compatible = false;
  int device_id = 0;
  std::string target_platform;
  std::optional<ExportRecord> record;
};

// kInvalidProgram when it is no JSON, a key has the wrong type, a name is empty or repeated, an alias is none of an
// output and an input of its own, or the record contradicts the bindings. `serialized_metadata` (Torch-TensorRT's
// base64 pickle) is never interpreted.
ETRT_INTERNAL Result<EngineMetadata> parse_metadata(std::string_view json);

}  // namespace executorch_tensorrt
