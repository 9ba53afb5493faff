// The streams and events of the fake CUDA runtime. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory.h"

namespace fake_cuda {

struct Stream;

struct Event {
  std::string name;
  int device = 0;
  bool timed = false;
  // The records that were asked for, and those that the streams came to.
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  Stream* on = nullptr;
  double time = 0;  // of the last that was reached, in ms

  bool is_done() const { return reached == recorded; }
};

using Works = std::vector<std::function<void()>>;

struct Stream {
  Stream() {
    static unsigned long long last = 0;
    id = ++last;
  }

  unsigned long long id;  // of no other, ever
  std::string name;
  int device = 0;
  int capturing = 0;
  bool destroyed = false;
  std::shared_ptr<Works> captured;  // while it is captured, in place of the queue
  int pending = 0;                  // copies and work in the queue, where records and waits are as well
  std::deque<std::function<void()>> queue;
};

class Streams {
 public:
  // Its handle: `again`, of a stream that was destroyed, or a new one.
  void* create(int device, void* again = nullptr) { return create(device, "s" + std::to_string(++num_named_), again); }
  void* create(int device, const std::string& name, void* again) {
    streams_.push_back(std::make_unique<Stream>());
    Stream* stream = streams_.back().get();
    stream->name = name;
    stream->device = device;
    void* handle = again != nullptr ? again : stream;
    named_[handle] = stream;
    return handle;
  }

  // Null for a handle that was never one.
  Stream* find(void* handle, int device) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number <= 2) {
      const bool own = number == 2;
      auto& stream = defaults_[{own ? std::this_thread::get_id() : std::thread::id(), device}];
      if (stream == nullptr) {
        stream = std::make_unique<Stream>();
        stream->name = own ? "per-thread" : "default";
        stream->device = device;
      }
      return stream.get();
    }
    const auto found = named_.find(handle);
    return found == named_.end() ? nullptr : found->second;
  }

  Event* create_event(int device, bool timed) {
    events_.push_back(std::make_unique<Event>());
    Event* event = events_.back().get();
    event->name = "e" + std::to_string(++num_events_);
    event->device = device;
    event->timed = timed;
    live_events_.insert(event);
    return event;
  }
  bool destroy_event(void* event) { return live_events_.erase(static_cast<Event*>(event)) == 1; }
  // Null for one that is not alive.
  Event* find_event(void* handle) const {
    const auto found = live_events_.find(static_cast<Event*>(handle));
    return found == live_events_.end() ? nullptr : *found;
  }
  int num_live_events() const { return static_cast<int>(live_events_.size()); }

  void add(Stream* stream, std::function<void()> work) {
    if (stream->captured) {
      stream->captured->push_back(std::move(work));
      return;
    }
    ++stream->pending;
    stream->queue.push_back([this, stream, work = std::move(work)] {
      --stream->pending;
      now_ += 1.0;
      work();
    });
  }
  void add_record(Stream* stream, Event* event) {
    if (stream->captured) {
      die("an event is recorded on a stream that is captured");
    }
    event->on = stream;
    stream->queue.push_back([this, event, number = ++event->recorded] {
      event->reached = number;
      event->time = now_;
    });
  }
  void add_wait(Stream* stream, Event* event) {
    if (stream->captured) {
      die("a stream that is captured waits for an event");
    }
    if (event->on != nullptr) {
      stream->queue.push_back([event, on = event->on, number = event->recorded] { run_until(on, event, number); });
    }
  }

  void run(Stream* stream) {
    while (!stream->queue.empty()) {
      step(stream);
    }
  }
  int run_some(Stream* stream, int count) {
    int ran = 0;
    for (; ran < count && !stream->queue.empty(); ++ran) {
      step(stream);
    }
    return ran;
  }
  void run(Event* event) {
    if (!event->is_done()) {
      run_until(event->on, event, event->recorded);
    }
  }

  void run_all(int device) {
    for (const auto& stream : streams_) {
      if (stream->device == device) run(stream.get());
    }
    for (const auto& entry : defaults_) {
      if (entry.first.second == device) run(entry.second.get());
    }
  }

  // Names begin again. Handles of before stay known.
  void reset() {
    num_named_ = num_events_ = 0;
    now_ = 0;
    for (const auto& stream : streams_) check_idle(*stream);
    for (const auto& entry : defaults_) check_idle(*entry.second);
  }

 private:
  static void check_idle(const Stream& stream) {
    if (!stream.queue.empty()) {
      die("a test leaves work on stream " + stream.name);
    }
  }
  static void step(Stream* stream) {
    const std::function<void()> work = std::move(stream->queue.front());
    stream->queue.pop_front();
    work();
  }
  static void run_until(Stream* stream, const Event* event, std::uint64_t number) {
    while (event->reached < number) {
      step(stream);
    }
  }

  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;
  std::map<void*, Stream*> named_;
  std::set<Event*> live_events_;
  std::map<std::pair<std::thread::id, int>, std::unique_ptr<Stream>> defaults_;
  int num_named_ = 0;
  int num_events_ = 0;
  double now_ = 0;
};

}  // namespace fake_cuda
