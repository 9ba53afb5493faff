// Locks whose holder may need Python's GIL: in a process with Python, a thread that has the GIL lets go of it while it
// waits for one.
#pragma once

#include <mutex>

#include "core/internal.h"

namespace executorch_tensorrt {

// Takes a lock that another thread holds.
using TakeLock = void (*)(std::unique_lock<std::mutex>& lock);

// How, from now on. Python's bindings set it.
ETRT_INTERNAL void set_take_lock(TakeLock take_lock);

// The mutex, locked. Every mutex under which an engine runs is taken by this. With `yields` false the GIL is kept: for
// callers that would not get it back, and engines that do not need it.
std::unique_lock<std::mutex> locked(std::mutex& mutex, bool yields = true);

}  // namespace executorch_tensorrt
