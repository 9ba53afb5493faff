// Between a core Status and what ExecuTorch returns: the code, the log, and the text for take_last_error().
#pragma once

#include <executorch/runtime/core/error.h>

#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "core/internal.h"
#include "core/status.h"
#include "process/log.h"

namespace executorch_tensorrt {

// Logs the message, keeps it for take_last_error() and returns the code.
executorch::runtime::Error report_failure(std::string_view context, const Status& status) noexcept;

// What take_last_error() answers on every thread where nothing has failed: the reason why nothing here can fail.
void set_standing_error(std::string text);

// The other way: Ok, or the text of the delegate that failed on this thread, else `what`; with the error's name.
ETRT_INTERNAL Status status_of(const std::string& what, executorch::runtime::Error error);

// What a message says when its numbers are left out, except those in quoted names: two of one cause differ in sizes.
std::string cause_of(std::string_view message);

// Reports what may fail on every call: each cause is logged once, however often it comes. Thread-safe.
class FailureLog {
 public:
  explicit FailureLog(std::string context) : context_(std::move(context)) {}
  ~FailureLog();  // logs how many messages were left out
  FailureLog(const FailureLog&) = delete;
  FailureLog& operator=(const FailureLog&) = delete;

  const std::string& context() const { return context_; }

  // As report_failure().
  executorch::runtime::Error report(const Status& status) noexcept;

  void warn(const std::string& message) noexcept;
  void info(const std::string& message) noexcept;

 private:
  static constexpr std::size_t kMaxCauses = 64;  // beyond, all are forgotten

  bool is_new(std::string_view message);
  void log(LogLevel level, const std::string& message);
  void tell(LogLevel level, const std::string& message) noexcept;

  const std::string context_;
  std::mutex mutex_;
  std::set<std::string> causes_;  // guarded by mutex_
  std::size_t left_out_ = 0;      // guarded by mutex_
};

}  // namespace executorch_tensorrt
