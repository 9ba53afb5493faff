// The engine runtimes of this process, by engine kind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/blob.h"
#include "engines/engine.h"

namespace executorch_tensorrt {

using EngineFactory = std::function<Result<std::unique_ptr<Engine>>(const EngineSource&)>;

// Replaces the factory of the same kind. Thread-safe.
void register_engine_runtime(const std::string& kind, EngineFactory factory);

// The kinds that can run here, sorted.
std::vector<std::string> engine_runtimes();

// The kind that the blob's engine needs: what its exporter recorded, else what its format implies.
Result<std::string> engine_kind_of(const BlobView& blob, const EngineMetadata& metadata);

// kNotSupported, naming the kinds at hand, when the engine's kind has no runtime here.
Result<std::unique_ptr<Engine>> load_engine(const BlobView& blob, const EngineMetadata& metadata);

}  // namespace executorch_tensorrt
