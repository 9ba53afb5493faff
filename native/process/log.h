// This library's messages: in ExecuTorch's log, and kept for whoever takes them (the Python package does).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/internal.h"

namespace executorch_tensorrt {

enum class LogLevel { kInfo, kWarning, kError };

struct LogMessage {
  LogLevel level;
  std::string text;
};

// In lines that ExecuTorch's log does not cut. Under Python that log may wait for the GIL, so no lock is held here that
// a thread with the GIL can wait for.
void log_message(LogLevel level, std::string_view text) noexcept;

// From now on messages are kept as well, the first kMaxKept until they are taken.
ETRT_INTERNAL void keep_messages();
inline constexpr std::size_t kMaxKept = 256;

// Whether there are messages to take; costs nothing.
ETRT_INTERNAL bool has_messages() noexcept;

// The messages since the last take, and one that says how many there was no room for.
ETRT_INTERNAL std::vector<LogMessage> take_messages();

// Drops what ExecuTorch logs from now on, for programs whose own messages say it.
ETRT_INTERNAL void silence_log();

}  // namespace executorch_tensorrt
