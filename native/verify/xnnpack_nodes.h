// The nodes of an XNNPACK graph: which fields of their tables name values, by the schema runtime_schema.fbs.
#pragma once

#include <cstdint>
#include <vector>

namespace executorch_tensorrt {

enum class XnnpackNode : std::uint8_t {
  kFullyConnected = 2,
  kConv2d = 7,
  kDepthwiseConv2d = 13,
  kConvTranspose2d = 39,
};

struct XnnpackNodeFields {
  std::vector<std::uint8_t> inputs;
  std::vector<std::uint8_t> outputs;
  int bias = -1;  // an input that may be missing
};

// Null for a type that the backend does not run.
const XnnpackNodeFields* xnnpack_node_fields(std::uint8_t type);

}  // namespace executorch_tensorrt
