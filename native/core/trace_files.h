// Sidecar files: the calls of one engine as Trace Event JSON for Perfetto, or as TREX layer times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/layer_record.h"

namespace executorch_tensorrt {

struct EngineTrace {
  std::string method;
  std::string engine_id;
  std::string engine_kind;
  std::int64_t process_id = 0;
  double ticks_per_us = 1000.0;
  std::size_t calls_dropped = 0;
  std::vector<CallRecord> calls;
};

// One slice per phase and per layer of every call: host phases, host layers and device layers on tracks of their own.
// What tracks show is in fields too, for readers: "otherData" has the method and the engine's id and kind, the args of
// a layer have its "clock".
std::string perfetto_json(const EngineTrace& trace);

// The count of calls, then a record per layer and profile with its times over all calls.
std::string trex_json(const EngineTrace& trace);

// `name` with what a file name may not hold replaced, and cut to 80 bytes.
std::string safe_file_name(const std::string& name);

}  // namespace executorch_tensorrt
