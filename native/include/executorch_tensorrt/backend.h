// Whether this library runs the TensorRT delegates of this process.
#pragma once

#include <string>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

// ExecuTorch takes one delegate of a name in a process. False when another library, such as Torch-TensorRT's runtime,
// had registered "TensorRTBackend" before this one was loaded: ExecuTorch then asks that library alone, and nothing of
// this one (options, guards, events) has an effect on programs.
ETRT_API bool backend_is_registered();

// Why not, with the other library's file; empty when it is registered.
ETRT_API std::string backend_problem();

}  // namespace executorch_tensorrt
