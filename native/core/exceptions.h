// Where exceptions end: no caller beyond knows what to do with one.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "core/status.h"

namespace executorch_tensorrt {

// Without words where there is no memory for them.
inline Status failure_in_words(StatusCode code, const char* text) noexcept {
  try {
    return {code, text};
  } catch (...) {
    return {StatusCode::kOutOfMemory, std::string()};
  }
}

// What a function that returns a Status returns; what it throws as a Status.
template <typename Function>
Status without_exceptions(Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (const std::bad_alloc&) {
    return failure_in_words(StatusCode::kOutOfMemory, "out of host memory");
  } catch (const std::exception& error) {
    return failure_in_words(StatusCode::kInternal, error.what());
  } catch (...) {
    return failure_in_words(StatusCode::kInternal, "unknown exception");
  }
}

}  // namespace executorch_tensorrt
