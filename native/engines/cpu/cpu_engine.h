// Engine kind "cpu": a nested multi-method ExecuTorch program, method "profile_<p>" for profile p.
#pragma once

#include <memory>

#include "engines/engine.h"

namespace executorch_tensorrt {

// kInvalidProgram when the program does not load or its methods do not fit the metadata.
Result<std::unique_ptr<Engine>> load_cpu_engine(const EngineSource& source);

}  // namespace executorch_tensorrt
