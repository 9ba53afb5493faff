#include "engines/registry.h"

#include <map>
#include <mutex>
#include <utility>

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

}  // namespace

void register_engine_runtime(const std::string& kind, EngineFactory factory) {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.factories[kind] = std::move(factory);
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

Result<std::string> engine_kind_of(const BlobView& blob, const EngineMetadata& metadata) {
  const bool is_cpu = blob.format == BlobFormat::kCpu;
  const std::string kind = metadata.record ? metadata.record->engine_kind : (is_cpu ? "cpu" : "tensorrt");
  if (is_cpu != (kind == "cpu")) {
    return invalid_program("engine blob is damaged: format '" + std::string(magic_of(blob.format)) +
                           "' holds engine kind '" + kind + "'");
  }
  return kind;
}

Result<std::unique_ptr<Engine>> load_engine(const BlobView& blob, const EngineMetadata& metadata) {
  Result<std::string> kind = engine_kind_of(blob, metadata);
  if (!kind.ok()) {
    return kind.status();
  }
  EngineFactory factory;
  {
    Registry& r = registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    if (const auto found = r.factories.find(*kind); found != r.factories.end()) {
      factory = found->second;
    }
  }
  if (!factory) {
    std::string have;
    for (const std::string& name : engine_runtimes()) {
      have += (have.empty() ? "'" : ", '") + name + "'";
    }
    return Status(StatusCode::kNotSupported, "engine kind '" + *kind + "' has no runtime on this machine, allowed " +
                                                 have + "; export with engine=\"cpu\" to run here");
  }
  return factory({blob.engine, blob.engine_size, &metadata});
}

}  // namespace executorch_tensorrt
