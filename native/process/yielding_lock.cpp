#include "process/yielding_lock.h"

#include <atomic>

namespace executorch_tensorrt {
namespace {

void wait_for(std::unique_lock<std::mutex>& lock) { lock.lock(); }

std::atomic<TakeLock> take_lock{wait_for};

}  // namespace

void set_take_lock(TakeLock function) { take_lock.store(function, std::memory_order_relaxed); }

std::unique_lock<std::mutex> locked(std::mutex& mutex, bool yields) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock) {
    yields ? take_lock.load(std::memory_order_relaxed)(lock) : lock.lock();
  }
  return lock;
}

}  // namespace executorch_tensorrt
