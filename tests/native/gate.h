// A gate inside an engine: tests hold calls there, to do something else meanwhile without waiting for time to pass.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace executorch_tensorrt::testing {

class Gate {
 public:
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = false;
  }

  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

  // What the engine calls. A test that forgets to open the gate, or can't, goes on in the end, and fails.
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    most_inside_ = std::max(most_inside_, ++inside_);
    changed_.notify_all();
    lock.unlock();
    std::this_thread::yield();  // others may come in as well, if nothing else keeps them
    lock.lock();
    changed_.wait_for(lock, kPatience, [this] { return is_open_; });
    --inside_;
  }

  // Whether so many calls came to the gate.
  bool wait_until_inside(int calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return inside_ >= calls; });
  }

  // Since the gate was made: how many were there at once.
  int most_inside() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return most_inside_;
  }

 private:
  static constexpr std::chrono::seconds kPatience{20};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int inside_ = 0;
  int most_inside_ = 0;
};

}  // namespace executorch_tensorrt::testing
