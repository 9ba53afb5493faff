// A guard by the request that it makes.
#pragma once

#include <memory>

#include "core/selection.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

namespace executorch_tensorrt::testing {

// Null for the default.
inline std::unique_ptr<OptimizationProfileGuard> guard_of(const Request& request) {
  switch (request.kind) {
    case Request::Kind::kDefault:
      return nullptr;
    case Request::Kind::kPinned:
      return std::make_unique<OptimizationProfileGuard>(request.index);
    case Request::Kind::kAuto:
      return std::unique_ptr<OptimizationProfileGuard>(
          new OptimizationProfileGuard(OptimizationProfileGuard::automatic()));
  }
  return nullptr;
}

}  // namespace executorch_tensorrt::testing
