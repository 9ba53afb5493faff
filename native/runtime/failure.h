// From a core Status to what ExecuTorch returns: the code, the log, and the text for take_last_error().
#pragma once

#include <executorch/runtime/core/error.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace executorch_tensorrt {

// In lines that ExecuTorch's log does not cut.
void log_failure(const std::string& message) noexcept;

// Logs the message, keeps it for take_last_error() and returns the code.
executorch::runtime::Error report_failure(std::string_view context, const Status& status) noexcept;

}  // namespace executorch_tensorrt
