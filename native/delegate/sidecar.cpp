#include "delegate/sidecar.h"

#include <executorch/runtime/platform/platform.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>

#include "process/log.h"
#include "process/write_file.h"

namespace executorch_tensorrt {
namespace {

double ticks_per_us() {
  const et_tick_ratio_t ratio = et_pal_ticks_to_ns_multiplier();  // ns = ticks * numerator / denominator
  return 1000.0 * static_cast<double>(ratio.denominator) / static_cast<double>(ratio.numerator);
}

// "FOLDER/forward-1a2b3c4d5e6f-4711.perfetto.json"; where that exists, a further trace of the engine ends in "-2" and
// so on.
std::string free_path(const EngineTrace& trace, const ProfilingSettings& settings) {
  const std::string stem = settings.path_prefix + "/" + safe_file_name(trace.method) + "-" +
                           (trace.engine_id.empty() ? "engine" : trace.engine_id) + "-" +
                           std::to_string(trace.process_id);
  const std::string ending = "." + std::string(to_string(settings.format)) + ".json";
  std::string path = stem + ending;
  for (int number = 2; access(path.c_str(), F_OK) == 0; ++number) {
    path = stem + "-" + std::to_string(number) + ending;
  }
  return path;
}

Status write_to_free_path(const EngineTrace& trace, const ProfilingSettings& settings, const std::string& text) {
  static std::mutex mutex;  // from the choice of a free name until it is taken
  const std::lock_guard<std::mutex> lock(mutex);
  return write_regular_file(free_path(trace, settings), text);
}

}  // namespace

Sidecar::Sidecar(const ProfilingSettings& settings, const std::string& method, const std::string& engine_id,
                 const std::string& engine_kind)
    : settings_(settings) {
  trace_.method = method;
  trace_.engine_id = engine_id;
  trace_.engine_kind = engine_kind;
  trace_.process_id = getpid();
  trace_.ticks_per_us = ticks_per_us();
}

Sidecar::~Sidecar() {
  if (trace_.calls.empty() && trace_.calls_dropped == 0) {
    return;
  }
  try {
    const bool trex = settings_.format == ProfileFormat::kTrex;
    const std::string text = trex ? trex_json(trace_) : perfetto_json(trace_);
    const Status status = write_to_free_path(trace_, settings_, text);
    if (!status.ok()) {
      log_message(LogLevel::kError, "profiling: " + status.message());
    }
  } catch (const std::exception& error) {
    char text[200];  // there may be no memory for a string
    std::snprintf(text, sizeof(text), "profiling: a trace was lost: %s", error.what());
    log_message(LogLevel::kError, text);
  }
}

void Sidecar::add(CallRecord call) {
  const std::size_t size = 1 + call.phases.size() + call.layers.size();
  if (records_ + size > kMaxRecords) {
    ++trace_.calls_dropped;
    return;
  }
  records_ += size;
  trace_.calls.push_back(std::move(call));
}

}  // namespace executorch_tensorrt
