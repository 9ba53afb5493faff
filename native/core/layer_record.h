// What an engine says of one layer in one call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace executorch_tensorrt {

struct LayerRecord {
  std::string name;
  std::uint64_t start = 0;  // ticks of ExecuTorch's clock (pal_current_ticks)
  std::uint64_t end = 0;
};

// Filled by an engine while it runs one call.
using LayerRecords = std::vector<LayerRecord>;

}  // namespace executorch_tensorrt
