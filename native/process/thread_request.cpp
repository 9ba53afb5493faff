#include "process/thread_request.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "core/guard_stack.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

namespace executorch_tensorrt {
namespace {

// One per process, because it lives in this shared library and nowhere else.
thread_local const Request* asked = nullptr;

std::int32_t checked(std::int32_t index) {
  if (index < 0) {
    throw std::invalid_argument("optimization profile index: got " + std::to_string(index) + ", allowed 0 or more");
  }
  return index;
}

std::shared_ptr<GuardEntry> ask(Request request) {
  return GuardStackOf<Request>::push("OptimizationProfileGuard", asked, request);
}

}  // namespace

thread_local SelectionCollector* SelectionCollector::active_ = nullptr;

Request current_request() { return asked != nullptr ? *asked : Request(); }

OptimizationProfileGuard::OptimizationProfileGuard(std::int32_t index) : Guard(ask(Request::pinned(checked(index)))) {}

OptimizationProfileGuard::OptimizationProfileGuard(Automatic) : Guard(ask(Request::automatic())) {}

OptimizationProfileGuard OptimizationProfileGuard::automatic() { return OptimizationProfileGuard(Automatic{}); }

}  // namespace executorch_tensorrt
