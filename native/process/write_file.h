// Writing files whole or not at all.
#pragma once

#include <string>

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

// A reader sees the whole file or none.
ETRT_INTERNAL Status write_file(const std::string& path, const std::string& bytes);

}  // namespace executorch_tensorrt
