#include "process/log.h"

#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/text.h"

namespace executorch_tensorrt {
namespace {

// ET_LOG cuts a message at 255 bytes.
constexpr std::size_t kLogLine = 240;

struct Kept {
  std::atomic<bool> enabled{false};
  std::atomic<bool> any{false};
  std::mutex mutex;  // guards the rest; nothing else is taken or called under it
  std::vector<LogMessage> messages;
  std::size_t dropped = 0;
};

Kept& kept() {
  static Kept& instance = *new Kept;  // outlives every engine
  return instance;
}

void keep(LogLevel level, std::string_view text) {
  Kept& k = kept();
  const std::lock_guard<std::mutex> lock(k.mutex);
  if (k.messages.size() < kMaxKept) {
    k.messages.push_back({level, std::string(text)});
  } else {
    ++k.dropped;
  }
  k.any.store(true, std::memory_order_release);
}

void drop_log_message(et_timestamp_t, et_pal_log_level_t, const char*, const char*, std::size_t, const char*,
                      std::size_t) {}

}  // namespace

void log_message(LogLevel level, std::string_view message) noexcept {
  std::string line;
  std::string_view text = "no memory for a message";
  try {
    line = printable(std::string(message));
    text = line;
  } catch (...) {
  }
  for (std::size_t at = 0; at < text.size(); at += kLogLine) {
    const int size = static_cast<int>(std::min(kLogLine, text.size() - at));
    if (level == LogLevel::kError) {
      ET_LOG(Error, "%.*s", size, text.data() + at);
    } else {
      ET_LOG(Info, "%.*s", size, text.data() + at);
    }
  }
  if (!kept().enabled.load(std::memory_order_relaxed)) {
    return;
  }
  try {
    keep(level, text);
  } catch (...) {  // no memory for it; ExecuTorch's log has it
  }
}

void keep_messages() { kept().enabled.store(true, std::memory_order_relaxed); }

bool has_messages() noexcept { return kept().any.load(std::memory_order_acquire); }

std::vector<LogMessage> take_messages() {
  Kept& k = kept();
  std::vector<LogMessage> taken;
  std::size_t dropped = 0;
  {
    const std::lock_guard<std::mutex> lock(k.mutex);
    taken.swap(k.messages);
    dropped = std::exchange(k.dropped, 0);
    k.any.store(false, std::memory_order_relaxed);
  }
  if (dropped > 0) {
    taken.push_back({LogLevel::kWarning, std::to_string(dropped) + " further messages were dropped: ExecuTorch's log "
                                                                   "has them"});
  }
  return taken;
}

void silence_log() {
  (void)executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(drop_log_message, "executorch_tensorrt"));
}

}  // namespace executorch_tensorrt
