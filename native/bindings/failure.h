// From a core Status to Python's exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "core/status.h"
#include "core/text.h"

namespace executorch_tensorrt {

// Becomes executorch_tensorrt.ExecuTorchError.
struct ExecuTorchFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A message of which names are a part.
[[noreturn]] inline void refuse_value(const std::string& text) { throw nanobind::value_error(printable(text).c_str()); }
[[noreturn]] inline void refuse_type(const std::string& text) { throw nanobind::type_error(printable(text).c_str()); }

inline void check(const Status& status) {
  const char* text = status.message().c_str();
  switch (status.code()) {
    case StatusCode::kOk:
      return;
    case StatusCode::kInvalidArgument:
    case StatusCode::kInvalidProgram:
      throw nanobind::value_error(text);
    case StatusCode::kOutOfMemory:
      PyErr_SetString(PyExc_MemoryError, text);
      throw nanobind::python_error();
    case StatusCode::kNotSupported:
    case StatusCode::kInternal:
      throw ExecuTorchFailure(text);
  }
}

template <typename T>
T value_of(Result<T> result) {
  if (!result.ok()) {
    check(result.status());
  }
  return std::move(*result);
}

}  // namespace executorch_tensorrt
