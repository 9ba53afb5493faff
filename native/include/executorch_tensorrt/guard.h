// Guard: what the guards of this library have in common.
#pragma once

#include <memory>
#include <string>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

struct GuardEntry;

// A guard asks something of the thread that makes it, until it ends. Those of one kind nest: the innermost counts, and
// when it ends, the one around it does again, also when an exception passes. Making one throws std::bad_alloc when
// there is no memory for it.
//
// A guard ends on its thread, and after those of its kind that were made later. One that is destroyed otherwise, by a
// coroutine that resumed on another thread or by an owner that keeps no order, logs a line and does no harm. On another
// thread, what that thread asks for stays; the guard's own thread has what the guard asks for until the next of the
// kind begins or ends there. Before a later one, that one still counts, and what was there before both comes after it.
class Guard {
 public:
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Whether the calling thread made it.
  ETRT_API bool is_of_this_thread() const noexcept;

  // Why it must not end now on the calling thread; empty when it may.
  ETRT_API std::string end_error() const;

 protected:
  ETRT_API explicit Guard(std::shared_ptr<GuardEntry> entry) noexcept;
  ETRT_API ~Guard();

 private:
  std::shared_ptr<GuardEntry> entry_;
};

}  // namespace executorch_tensorrt
