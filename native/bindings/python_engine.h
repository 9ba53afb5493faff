// Engines whose runtime is written in Python: src/executorch_tensorrt/engines/tensorrt/runtime.py.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace executorch_tensorrt {

// Engines of this kind come from `load`, with the arguments of runtime.load_engine() but the kind. They work on the
// CUDA device that their blob names.
void register_python_runtime(const std::string& kind, nanobind::callable load);

}  // namespace executorch_tensorrt
