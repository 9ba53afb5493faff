#include "runtime/status_of.h"

#include "executorch_tensorrt/last_error.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

StatusCode code_of(Error error) {
  switch (error) {
    case Error::Ok:
      return StatusCode::kOk;
    case Error::InvalidArgument:
      return StatusCode::kInvalidArgument;
    case Error::InvalidProgram:
    case Error::InvalidExternalData:
      return StatusCode::kInvalidProgram;
    case Error::MemoryAllocationFailed:
      return StatusCode::kOutOfMemory;
    case Error::NotSupported:
      return StatusCode::kNotSupported;
    default:
      return StatusCode::kInternal;
  }
}

// "InvalidArgument", without ExecuTorch's "Error::".
std::string name_of(Error error) {
  const std::string name = executorch::runtime::to_string(error);
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

}  // namespace

Status status_of(const std::string& what, Error error) {
  if (error == Error::Ok) {
    return {};
  }
  const std::string told = take_last_error();
  return {code_of(error), (told.empty() ? what : told) + " [" + name_of(error) + "]"};
}

}  // namespace executorch_tensorrt
