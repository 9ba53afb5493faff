// For C++ programs that run packages of PyTorch (.pt2) with engines inside.
#pragma once

#include <executorch/runtime/core/error.h>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

// Registers torch.ops.executorch_tensorrt.* with the libtorch of this process, before its first package is loaded.
// Thread-safe; calls after the first do nothing. NotSupported where there is no libtorch, or one before 2.10:
// take_last_error() says so. This library links none.
ETRT_API executorch::runtime::Error register_torch_operators();

}  // namespace executorch_tensorrt
