// Threads that call delegates over the CPU engine, which share states.
#pragma once

#include <string>

#include "sequences.h"

namespace executorch_tensorrt::testing {

// `blob`: writes rows [R, 4] at positions [R], its first argument, of a state "cache" [32, 4] that the engine owns, and
// returns the sum of all its rows; profile 0: R = 1, profile 1: R = 2..8.
Kind cpu_kind(std::string blob);

}  // namespace executorch_tensorrt::testing
