#include "process/failure.h"

#include <utility>

#include "core/text.h"
#include "executorch_tensorrt/last_error.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

thread_local std::string thread_last_error;

// Set while libraries are loaded.
std::string& standing_error() {
  static std::string& text = *new std::string;
  return text;
}

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

StatusCode code_of(Error error) {
  switch (error) {
    case Error::Ok:
      return StatusCode::kOk;
    case Error::InvalidArgument:
      return StatusCode::kInvalidArgument;
    case Error::InvalidProgram:
    case Error::InvalidExternalData:
      return StatusCode::kInvalidProgram;
    case Error::MemoryAllocationFailed:
      return StatusCode::kOutOfMemory;
    case Error::NotSupported:
      return StatusCode::kNotSupported;
    default:
      return StatusCode::kInternal;
  }
}

// "InvalidArgument", without ExecuTorch's "Error::".
std::string name_of(Error error) {
  const std::string name = executorch::runtime::to_string(error);
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

// `log` gets the whole text.
template <typename Log>
Error report_to(Log&& log, std::string_view context, const Status& status) noexcept {
  try {
    std::string text = printable(std::string(context) + ": " + status.message());
    log(text);
    thread_last_error = std::move(text);
  } catch (...) {
    thread_last_error.clear();  // no memory for words; the code says enough
  }
  return error_of(status.code());
}

}  // namespace

Error report_failure(std::string_view context, const Status& status) noexcept {
  return report_to([](const std::string& text) { log_message(LogLevel::kError, text); }, context, status);
}

std::string cause_of(std::string_view message) {
  std::string cause;
  bool quoted = false;
  for (const char c : message) {
    quoted ^= c == '\'';
    if (quoted || c < '0' || c > '9') {
      cause += c;
    } else if (cause.empty() || cause.back() != '#') {
      cause += '#';
    }
  }
  return cause;
}

FailureLog::~FailureLog() {
  if (left_out_ == 0) {
    return;
  }
  try {
    log_message(LogLevel::kInfo,
                context_ + ": " + std::to_string(left_out_) + " more messages of causes logged before");
  } catch (...) {  // no memory for it
  }
}

bool FailureLog::is_new(std::string_view message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (causes_.size() >= kMaxCauses) {
    causes_.clear();
  }
  const bool added = causes_.insert(cause_of(message)).second;
  left_out_ += added ? 0 : 1;
  return added;
}

void FailureLog::log(LogLevel level, const std::string& message) {
  if (is_new(message)) {
    log_message(level, message);
  }
}

Error FailureLog::report(const Status& status) noexcept {
  return report_to([this](const std::string& text) { log(LogLevel::kError, text); }, context_, status);
}

void FailureLog::tell(LogLevel level, const std::string& message) noexcept {
  try {
    log(level, context_ + ": " + message);
  } catch (...) {  // no memory for words
  }
}

void FailureLog::warn(const std::string& message) noexcept { tell(LogLevel::kWarning, message); }

void FailureLog::info(const std::string& message) noexcept { tell(LogLevel::kInfo, message); }

void set_standing_error(std::string text) { standing_error() = std::move(text); }

std::string take_last_error() {
  return thread_last_error.empty() ? standing_error() : std::exchange(thread_last_error, {});
}

Status status_of(const std::string& what, Error error) {
  if (error == Error::Ok) {
    return {};
  }
  const std::string told = std::exchange(thread_last_error, {});
  return {code_of(error), (told.empty() ? what : told) + " [" + name_of(error) + "]"};
}

}  // namespace executorch_tensorrt
