// Writing files whole or not at all.
#pragma once

#include <string>

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

// A reader of a regular file sees the old or the new one whole; its mode is kept, as is a link to it. Devices, pipes
// and open descriptors (/dev/stdout) are written to as they are. `executorch_tensorrt/files.py` does the same in
// Python.
ETRT_INTERNAL Status write_file(const std::string& path, const std::string& bytes);

// A regular file, whatever was there: for folders in which others may have left a link or a pipe.
Status write_regular_file(const std::string& path, const std::string& bytes);

}  // namespace executorch_tensorrt
