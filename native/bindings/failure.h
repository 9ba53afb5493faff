// From ExecuTorch's errors to Python's exceptions.
#pragma once

#include <executorch/runtime/core/error.h>
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

#include "executorch_tensorrt/last_error.h"

namespace executorch_tensorrt {

// Becomes executorch_tensorrt.ExecuTorchError.
struct ExecuTorchFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "InvalidArgument", without ExecuTorch's "Error::".
inline std::string error_name(executorch::runtime::Error error) {
  const std::string name = executorch::runtime::to_string(error);
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

// With the text of the delegate that failed, else `what`.
[[noreturn]] inline void raise(const std::string& what, executorch::runtime::Error error) {
  std::string text = take_last_error();
  if (text.empty()) {
    text = what;
  }
  text += std::string(" [") + error_name(error) + "]";
  switch (error) {
    case executorch::runtime::Error::InvalidArgument:
    case executorch::runtime::Error::InvalidProgram:
    case executorch::runtime::Error::InvalidExternalData:
      throw nanobind::value_error(text.c_str());
    case executorch::runtime::Error::MemoryAllocationFailed:
      PyErr_SetString(PyExc_MemoryError, text.c_str());
      throw nanobind::python_error();
    default:
      throw ExecuTorchFailure(text);
  }
}

inline void check(const std::string& what, executorch::runtime::Error error) {
  if (error != executorch::runtime::Error::Ok) {
    raise(what, error);
  }
}

}  // namespace executorch_tensorrt
