// The memory of programs that are planned on a CUDA device.
#pragma once

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

// Ok when a program with memory on a CUDA device can be loaded here, whoever allocates it; else why not.
ETRT_INTERNAL Status device_memory_status();

}  // namespace executorch_tensorrt
