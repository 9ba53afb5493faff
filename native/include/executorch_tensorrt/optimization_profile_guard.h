// OptimizationProfileGuard: which optimization profile the TensorRT delegates use, around Module::forward().
#pragma once

#include <cstdint>
#include <type_traits>

#include "executorch_tensorrt/api.h"
#include "executorch_tensorrt/guard.h"

namespace executorch_tensorrt {

// Stores a request for the calling thread and does nothing else: every TensorRTBackend delegate that this thread runs
// before the guard ends reads it once per execution. Without a guard a delegate uses what the method was loaded with,
// else profile 0.
//
//   executorch_tensorrt::OptimizationProfileGuard guard(1);
//   auto result = module.forward(inputs);
class [[nodiscard]] OptimizationProfileGuard : public Guard {
 public:
  // Pins the profile with this index on every engine. Throws std::invalid_argument for a negative index; an index past
  // an engine's last profile is an error of forward().
  ETRT_API explicit OptimizationProfileGuard(std::int32_t index);

  // A bool is no index.
  template <typename T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  explicit OptimizationProfileGuard(T) = delete;

  // The lowest profile that accepts all input shapes, on every call, whatever ran before.
  ETRT_API static OptimizationProfileGuard automatic();

 private:
  struct Automatic {};
  explicit OptimizationProfileGuard(Automatic);
};

}  // namespace executorch_tensorrt
