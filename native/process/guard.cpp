#include "executorch_tensorrt/guard.h"

#include <utility>

#include "core/guard_stack.h"
#include "process/log.h"

namespace executorch_tensorrt {

Guard::Guard(std::shared_ptr<GuardEntry> entry) noexcept : entry_(std::move(entry)) {}

bool Guard::is_of_this_thread() const noexcept { return entry_->stack.is_of_this_thread(); }

std::string Guard::end_error() const {
  GuardStack& stack = entry_->stack;
  if (stack.is_of_this_thread()) {
    return stack.is_innermost(*entry_)
               ? std::string()
               : std::string(stack.kind()) +
                     ": got its end while a later one is open, allowed the innermost; end the later one first";
  }
  return GuardStack::thread_ends()
             ? std::string()
             : std::string(stack.kind()) +
                   ": got its end on another thread, allowed on the thread where it began; end it there";
}

Guard::~Guard() {
  try {
    if (const std::string error = end_error(); !error.empty()) {
      log_message(LogLevel::kError, error);
    }
  } catch (...) {  // no memory for words
  }
  entry_->stack.end(*entry_);
}

}  // namespace executorch_tensorrt
