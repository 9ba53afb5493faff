// The full text of a delegate's last failure; ExecuTorch's error codes carry none and its log cuts lines.
#pragma once

#include <string>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

// Why the last TensorRTBackend delegate that failed on this thread did so. Empty when none failed since the last take;
// but where another library has registered the backend before, always backend_problem(): no delegate is of this one.
ETRT_API std::string take_last_error();

}  // namespace executorch_tensorrt
