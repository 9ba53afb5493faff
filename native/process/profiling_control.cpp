#include "executorch_tensorrt/profiling_control.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "process/failure.h"
#include "process/profiling_control.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

struct Control {
  std::mutex mutex;  // guards settings
  std::optional<ProfilingSettings> settings;
  std::atomic<std::uint64_t> generation{0};
  FailureLog failures{"set_profiling"};

  void publish(std::optional<ProfilingSettings> changed) {
    const std::lock_guard<std::mutex> lock(mutex);
    settings = std::move(changed);
    generation.fetch_add(1, std::memory_order_release);
  }
};

Control& control() {
  static Control& instance = *new Control;  // outlives every engine
  return instance;
}

}  // namespace

std::uint64_t profiling_generation() { return control().generation.load(std::memory_order_acquire); }

ProfilingSnapshot profiling_snapshot() {
  const std::lock_guard<std::mutex> lock(control().mutex);
  return {control().generation.load(std::memory_order_relaxed), control().settings};
}

Error set_profiling(const std::string& level, const std::string& format, const std::string& path_prefix) {
  ProfilingSettings settings;
  Status status = parse_level(level, settings.level);
  if (status.ok()) {
    status = parse_format(format, settings.format);
  }
  settings.path_prefix = path_prefix;
  if (status.ok()) {
    status = check_settings(settings);
  }
  if (!status.ok()) {
    return control().failures.report(status);
  }
  control().publish(std::move(settings));
  return Error::Ok;
}

void clear_profiling() { control().publish(std::nullopt); }

ProfilingState profiling_state() {
  const ProfilingSnapshot snapshot = profiling_snapshot();
  ProfilingState state;
  state.generation = snapshot.generation;
  if (snapshot.settings) {
    state.is_set = true;
    state.level = to_string(snapshot.settings->level);
    state.format = to_string(snapshot.settings->format);
    state.path_prefix = snapshot.settings->path_prefix;
  }
  return state;
}

}  // namespace executorch_tensorrt
