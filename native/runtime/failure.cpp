#include "runtime/failure.h"

#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <utility>

#include "executorch_tensorrt/last_error.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

// ET_LOG cuts a message at 255 bytes.
constexpr std::size_t kLogLine = 240;

thread_local std::string thread_last_error;

Error error_of(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return Error::Ok;
    case StatusCode::kInvalidArgument:
      return Error::InvalidArgument;
    case StatusCode::kInvalidProgram:
      return Error::InvalidProgram;
    case StatusCode::kNotSupported:
      return Error::NotSupported;
    case StatusCode::kOutOfMemory:
      return Error::MemoryAllocationFailed;
    case StatusCode::kInternal:
      return Error::Internal;
  }
  return Error::Internal;
}

}  // namespace

void log_failure(const std::string& message) noexcept {
  for (std::size_t at = 0; at < message.size(); at += kLogLine) {
    ET_LOG(Error, "%.*s", static_cast<int>(std::min(kLogLine, message.size() - at)), message.data() + at);
  }
}

Error report_failure(std::string_view context, const Status& status) noexcept {
  try {
    std::string text = std::string(context) + ": " + status.message();
    log_failure(text);
    thread_last_error = std::move(text);
  } catch (...) {
    thread_last_error.clear();  // no memory for words; the code says enough
  }
  return error_of(status.code());
}

std::string take_last_error() { return std::exchange(thread_last_error, {}); }

}  // namespace executorch_tensorrt
