// How the runner fails: one line on stderr and an exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "core/status.h"

namespace executorch_tensorrt {

// What the user can put right: a file, an input, an option. Exit code 2.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A mistake on the command line itself. Exit code 2.
struct UsageError : UserError {
  using UserError::UserError;
};

// Anything else. Exit code 1.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A wrong input, program or option and too little memory are the user's; what else goes wrong in a call is not.
inline void throw_if(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return;
    case StatusCode::kInvalidArgument:
    case StatusCode::kInvalidProgram:
    case StatusCode::kOutOfMemory:
      throw UserError(status.message());
    case StatusCode::kNotSupported:
    case StatusCode::kInternal:
      throw RunError(status.message());
  }
}

// Before the first call, whatever fails is what was given.
template <typename T>
T value_of(Result<T> result) {
  if (!result.ok()) {
    throw UserError(result.status().message());
  }
  return std::move(*result);
}

}  // namespace executorch_tensorrt
