// The blob that a delegate carries in a .pte: Torch-TensorRT's TR01/TR02 layout, and the same layout under another
// magic for engines that TensorRT cannot load.
//
//   offset  size  field (little-endian)
//        0     4  magic: "TR01", "TR02" (aliased I/O present), "ETC1" (an ExecuTorch program: engine kind cpu)
//        4     4  metadata offset from the start of the blob
//        8     4  metadata size
//       12     4  engine offset from the start of the blob, a multiple of 16
//       16     8  engine size
//       24     8  reserved: version 1, then zeros
//
// The metadata is JSON (metadata.h). A blob may start at any address, so header fields are copied, never cast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

enum class BlobFormat { kTensorRT, kTensorRTAliased, kCpu };

// Views into the bytes that were parsed.
struct BlobView {
  BlobFormat format = BlobFormat::kTensorRT;
  std::string_view metadata;
  const std::uint8_t* engine = nullptr;
  std::size_t engine_size = 0;
};

// "TR01", "TR02", "ETC1"
ETRT_INTERNAL std::string_view magic_of(BlobFormat format);

// kInvalidProgram when the header is truncated, foreign, or points outside the `size` bytes.
ETRT_INTERNAL Result<BlobView> parse_blob(const void* data, std::size_t size);

}  // namespace executorch_tensorrt
