// Engines of PyTorch packages: one handle each for the whole process, made at the first call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/internal.h"
#include "core/metadata.h"
#include "delegate/engine_handle.h"

namespace executorch_tensorrt {

// What the operator's `engine` tensor begins with (little-endian):
//
//   offset  size  field
//        0     4  magic "ETP1"
//        4     4  1 when the blob lies outside the tensor, else 0
//        8     8  size of the blob
//       16    32  SHA-256 of the blob
//       48     4  the request of calls without a guard: the index of an optimization profile, or -1 for automatic
//       52    12  zeros
//       64        the blob, unless it lies outside
inline constexpr std::size_t kPackagedHeaderSize = 64;

struct PackagedEngine {
  std::string label;  // "engine 1a2b3c4d5e6f"
  EngineMetadata metadata;
  std::shared_ptr<const void> blob;  // before what reads it
  std::unique_ptr<EngineHandle> handle;
};

// The engine that a tensor of `size` bytes at `data` is or stands for. The blob is copied: a package may be unloaded
// while the engine stays. Thread-safe; costs a look-up once the engine is there.
Result<std::shared_ptr<PackagedEngine>> packaged_engine(const void* data, std::size_t size);

// Maps a blob that lies outside its tensor, `size` bytes at `offset` of a file, for as long as the process lives.
// `digest` is its SHA-256 in hexadecimal, which is checked here, once a process: all packages share the engine.
ETRT_INTERNAL Status map_packaged_engine(const std::string& path, std::size_t offset, std::size_t size,
                                         const std::string& digest);

// Frees all engines, once their calls are over, so that their traces are written. Calls that come later make them
// again.
ETRT_INTERNAL void release_packaged_engines();

}  // namespace executorch_tensorrt
