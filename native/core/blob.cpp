#include "core/blob.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "core/text.h"

namespace executorch_tensorrt {
namespace {

constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kEngineAlignment = 16;
// Torch-TensorRT writes a few hundred bytes; ours grows with inputs times profiles.
constexpr std::uint32_t kMaxMetadataSize = 16u << 20;

struct Format {
  BlobFormat format;
  std::string_view magic;
};
constexpr Format kFormats[] = {
    {BlobFormat::kTensorRT, "TR01"},
    {BlobFormat::kTensorRTAliased, "TR02"},
    {BlobFormat::kCpu, "ETC1"},
};

template <typename T>
T read_field(const std::uint8_t* bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof(value));
  return value;
}

// By subtraction: offset + length can wrap around.
bool fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

std::string part(const char* name, std::uint64_t offset, std::uint64_t length) {
  return std::string(name) + " at " + std::to_string(offset) + ", " + std::to_string(length) + " bytes";
}

}  // namespace

std::string_view magic_of(BlobFormat format) {
  for (const auto& entry : kFormats) {
    if (entry.format == format) {
      return entry.magic;
    }
  }
  return "";
}

Result<BlobView> parse_blob(const void* data, std::size_t size) {
  if (data == nullptr || size < kHeaderSize) {
    return invalid_program("engine blob is truncated: got " + std::to_string(size) + " bytes, allowed at least " +
                           std::to_string(kHeaderSize));
  }
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  const std::string_view magic(reinterpret_cast<const char*>(bytes), 4);
  const Format* format =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& known) { return known.magic == magic; });
  if (format == std::end(kFormats)) {
    return invalid_program("engine blob is foreign: got magic " + quoted(magic) +
                           ", allowed 'TR01', 'TR02', 'ETC1'; save the program with Torch-TensorRT 2.13 or later");
  }
  const auto metadata_offset = read_field<std::uint32_t>(bytes, 4);
  const auto metadata_size = read_field<std::uint32_t>(bytes, 8);
  const auto engine_offset = read_field<std::uint32_t>(bytes, 12);
  const auto engine_size = read_field<std::uint64_t>(bytes, 16);
  const std::string have = " does not fit the blob of " + std::to_string(size) + " bytes";
  if (metadata_size > kMaxMetadataSize) {
    return invalid_program("engine blob is damaged: metadata size " + std::to_string(metadata_size) +
                           ", allowed at most " + std::to_string(kMaxMetadataSize));
  }
  if (metadata_offset < kHeaderSize || !fits(metadata_offset, metadata_size, size)) {
    return invalid_program("engine blob is damaged: " + part("metadata", metadata_offset, metadata_size) + have);
  }
  if (engine_offset % kEngineAlignment != 0) {
    return invalid_program("engine blob is damaged: engine offset " + std::to_string(engine_offset) +
                           ", allowed multiples of " + std::to_string(kEngineAlignment));
  }
  if (engine_offset < kHeaderSize || engine_size == 0 || !fits(engine_offset, engine_size, size)) {
    return invalid_program("engine blob is damaged: " + part("engine", engine_offset, engine_size) + have);
  }
  BlobView view;
  view.format = format->format;
  view.metadata = {reinterpret_cast<const char*>(bytes) + metadata_offset, metadata_size};
  view.engine = bytes + engine_offset;
  view.engine_size = static_cast<std::size_t>(engine_size);
  return view;
}

}  // namespace executorch_tensorrt
