// Sidecar: the trace file of one engine, written once, when tracing to it ends.
#pragma once

#include <cstddef>
#include <string>

#include "core/layer_record.h"
#include "core/profiling_settings.h"
#include "core/trace_files.h"

namespace executorch_tensorrt {

class Sidecar {
 public:
  // About 100 bytes a record of a phase or layer: 2,000,000 take some 200 MB. What comes after is counted.
  static constexpr std::size_t kMaxRecords = 2'000'000;

  // `settings` have been checked.
  Sidecar(const ProfilingSettings& settings, const std::string& method, const std::string& engine_id,
          const std::string& engine_kind);

  // Writes the file, unless there was no call; logs, once, if that fails.
  ~Sidecar();

  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  void add(CallRecord call);

 private:
  ProfilingSettings settings_;
  EngineTrace trace_;
  std::size_t records_ = 0;
};

}  // namespace executorch_tensorrt
