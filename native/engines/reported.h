// What an engine reports of itself, beside what its blob says.
#pragma once

#include "engines/engine.h"

namespace executorch_tensorrt {

// Fills in the element types that the blob leaves open. kInvalidProgram, naming binding or input, profile and both
// values, when the engine contradicts the blob.
Status take_over_reported(const Engine& engine, EngineMetadata& metadata);

}  // namespace executorch_tensorrt
