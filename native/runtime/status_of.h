// From what ExecuTorch returns to a core Status; runtime/failure.h goes the other way.
#pragma once

#include <executorch/runtime/core/error.h>

#include <string>

#include "core/status.h"

namespace executorch_tensorrt {

// Ok, or the text of the delegate that failed on this thread, else `what`; with the error's name.
Status status_of(const std::string& what, executorch::runtime::Error error);

}  // namespace executorch_tensorrt
