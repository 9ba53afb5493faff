// The blob's JSON metadata: Torch-TensorRT's keys, and one further key, "executorch_tensorrt", with what is ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile_table.h"
#include "core/scalar_type.h"
#include "core/shape_program.h"
#include "core/status.h"

namespace executorch_tensorrt {

struct Binding {
  std::string name;
  ScalarType dtype = ScalarType::kUnknown;
};

struct AliasedIo {
  std::string output;
  std::string input;
  std::string kind;
};

// What the exporter of this project adds. Blobs written by Torch-TensorRT have none of it.
struct ExportRecord {
  std::string engine_kind;
  std::string engine_id;
  std::string builder;
  std::string signature;
  ProfileTable profiles;
  std::optional<ShapeProgram> shapes;
};

struct EngineMetadata {
  std::vector<Binding> inputs;   // in binding order
  std::vector<Binding> outputs;  // in binding order
  std::vector<AliasedIo> aliased_io;
  bool hardware_compatible = false;
  int device_id = 0;
  std::string target_platform;
  std::optional<ExportRecord> record;
};

// kInvalidProgram when it is no JSON, a key has the wrong type, a name is empty or repeated, or the record contradicts
// the bindings. `serialized_metadata` (Torch-TensorRT's base64 pickle) is never interpreted.
Result<EngineMetadata> parse_metadata(std::string_view json);

}  // namespace executorch_tensorrt
