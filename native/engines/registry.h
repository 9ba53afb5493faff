// The engine runtimes of this process, by engine kind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/internal.h"
#include "engines/engine.h"

namespace executorch_tensorrt {

using EngineFactory = std::function<Result<std::unique_ptr<Engine>>(const EngineSource&)>;

// Replaces the factory of the same kind, with nothing if it is null. Thread-safe.
ETRT_INTERNAL void register_engine_runtime(const std::string& kind, EngineFactory factory);

// The kinds that can run here, sorted.
ETRT_INTERNAL std::vector<std::string> engine_runtimes();

// The kinds of which the blob's engine is one: what its exporter recorded, else those that its format allows.
ETRT_INTERNAL Result<std::vector<std::string>> engine_kinds_of(const BlobView& blob, const EngineMetadata& metadata);

// With the runtime of the engine's kind; where that may be one of several, with the first that accepts it.
// kNotSupported, naming the kinds at hand, when there is none here.
Result<std::unique_ptr<Engine>> load_engine(const BlobView& blob, const EngineMetadata& metadata);

}  // namespace executorch_tensorrt
