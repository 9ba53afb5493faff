// Text for JSON, which is UTF-8.
#pragma once

#include <string>

#include "core/internal.h"

namespace executorch_tensorrt {

// Names and paths come from anywhere: bytes that are no UTF-8 become U+FFFD.
ETRT_INTERNAL std::string utf8(const std::string& text);

}  // namespace executorch_tensorrt
