#include "engines/registry.h"

#include <map>
#include <mutex>
#include <utility>

#include "core/text.h"
#include "engines/cpu/cpu_engine.h"

namespace executorch_tensorrt {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, EngineFactory> factories;
};

Registry& registry() {
  static Registry& instance = *[] {
    auto* created = new Registry;
    created->factories.emplace("cpu", load_cpu_engine);
    return created;
  }();
  return instance;
}

EngineFactory find_factory(const std::string& kind) {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  const auto found = r.factories.find(kind);
  return found != r.factories.end() ? found->second : nullptr;
}

std::string listed(const std::vector<std::string>& names, const char* separator) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : separator) + quoted(name);
  }
  return text;
}

}  // namespace

void register_engine_runtime(const std::string& kind, EngineFactory factory) {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (factory) {
    r.factories[kind] = std::move(factory);
  } else {
    r.factories.erase(kind);
  }
}

std::vector<std::string> engine_runtimes() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  std::vector<std::string> kinds;
  for (const auto& entry : r.factories) {
    kinds.push_back(entry.first);
  }
  return kinds;
}

Result<std::vector<std::string>> engine_kinds_of(const BlobView& blob, const EngineMetadata& metadata) {
  const bool is_cpu = blob.format == BlobFormat::kCpu;
  const std::string recorded = metadata.record ? metadata.record->engine_kind : "";
  if (recorded.empty()) {
    return is_cpu ? std::vector<std::string>{"cpu"} : std::vector<std::string>{"tensorrt", "tensorrt_rtx"};
  }
  if (is_cpu != (recorded == "cpu")) {
    return invalid_program("engine blob is damaged: format '" + std::string(magic_of(blob.format)) +
                           "' holds engine kind '" + recorded + "'");
  }
  return std::vector<std::string>{recorded};
}

Result<std::unique_ptr<Engine>> load_engine(const BlobView& blob, const EngineMetadata& metadata) {
  const Result<std::vector<std::string>> kinds = engine_kinds_of(blob, metadata);
  if (!kinds.ok()) {
    return kinds.status();
  }
  std::string refusals;
  for (const std::string& kind : *kinds) {
    const EngineFactory factory = find_factory(kind);
    if (!factory) {
      continue;
    }
    auto engine = factory({blob.engine, blob.engine_size, &metadata});
    if (engine.ok() || kinds->size() == 1) {
      return engine;
    }
    refusals += (refusals.empty() ? "'" : "; '") + kind + "': " + engine.status().message();
  }
  if (!refusals.empty()) {
    return invalid_program("no runtime on this machine accepts the engine: " + refusals);
  }
  return Status(StatusCode::kNotSupported,
                "engine kind " + listed(*kinds, " or ") + " has no runtime on this machine, allowed " +
                    listed(engine_runtimes(), ", ") + "; export with engine=\"cpu\" to run here");
}

}  // namespace executorch_tensorrt
