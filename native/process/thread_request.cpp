#include "process/thread_request.h"

#include <stdexcept>
#include <string>

#include "executorch_tensorrt/optimization_profile_guard.h"

namespace executorch_tensorrt {
namespace {

// One per process, because it lives in this shared library and nowhere else.
thread_local Request thread_request;

std::int32_t checked(std::int32_t index) {
  if (index < 0) {
    throw std::invalid_argument("optimization profile index: got " + std::to_string(index) + ", allowed 0 or more");
  }
  return index;
}

}  // namespace

thread_local SelectionCollector* SelectionCollector::active_ = nullptr;

Request current_request() { return thread_request; }
void set_current_request(Request request) { thread_request = request; }

OptimizationProfileGuard::OptimizationProfileGuard(std::int32_t index)
    : previous_kind_(static_cast<std::uint8_t>(thread_request.kind)), previous_index_(thread_request.index) {
  thread_request = Request::pinned(checked(index));
}

OptimizationProfileGuard::OptimizationProfileGuard(Automatic)
    : previous_kind_(static_cast<std::uint8_t>(thread_request.kind)), previous_index_(thread_request.index) {
  thread_request = Request::automatic();
}

OptimizationProfileGuard OptimizationProfileGuard::automatic() { return OptimizationProfileGuard(Automatic{}); }

OptimizationProfileGuard::~OptimizationProfileGuard() {
  thread_request = {static_cast<Request::Kind>(previous_kind_), previous_index_};
}

}  // namespace executorch_tensorrt
