// What an engine and its delegate say of one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace executorch_tensorrt {

// Which clock a duration was read from. Durations of different clocks do not add up.
enum class Clock : std::uint8_t { kHost, kDevice };

struct LayerRecord {
  std::string name;
  std::uint64_t start = 0;  // ticks of ExecuTorch's clock (pal_current_ticks); device times are laid end to end
  std::uint64_t end = 0;
  Clock clock = Clock::kHost;
  std::int32_t instruction = -1;  // of the nested program, for engines of kind cpu
};

// Filled by an engine while it runs one call.
using LayerRecords = std::vector<LayerRecord>;

struct PhaseRecord {
  const char* name = "";  // one of kEventNames
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

struct CallRecord {
  std::uint64_t number = 0;  // of the engine's calls since it was loaded
  std::size_t profile = 0;
  std::string request;
  bool ok = false;
  std::vector<PhaseRecord> phases;  // as they ended: the whole call last
  LayerRecords layers;
  std::size_t layers_dropped = 0;
  std::optional<std::uint64_t> device_ns;  // of an engine on a device: the work of the call
  bool returned_early = false;             // before its work was done, as its caller asked
  std::uint64_t enqueue_start = 0;         // in ticks
};

}  // namespace executorch_tensorrt
