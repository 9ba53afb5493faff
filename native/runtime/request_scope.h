// The calling thread's request, which OptimizationProfileGuard sets.
#pragma once

#include "core/selection.h"

namespace executorch_tensorrt {

Request current_request();
void set_current_request(Request request);

}  // namespace executorch_tensorrt
