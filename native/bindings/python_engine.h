// Engines whose runtime is written in Python: src/executorch_tensorrt/engines/tensorrt/runtime.py.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>

namespace executorch_tensorrt {

// Engines of this kind come from `load`, with the arguments of runtime.load_engine() but the kind. They work on the
// CUDA device that their blob names.
void register_python_runtime(const std::string& kind, nanobind::callable load);

// Around calls on this thread: what an engine raises that is no failure (KeyboardInterrupt, SystemExit) is kept for
// raise().
class InterruptionScope {
 public:
  InterruptionScope();
  ~InterruptionScope();
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

  static void keep_current_exception();
  void raise();

 private:
  InterruptionScope* previous_;
  std::exception_ptr caught_;
};

}  // namespace executorch_tensorrt
