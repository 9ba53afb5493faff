// What the functions of the fake CUDA runtime share: the state of the process and of its threads, and what every call
// does.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "memory.h"
#include "streams.h"

namespace fake_cuda {

enum Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInsufficientDriver = 35,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidHandle = 400,
  kNotReady = 600,
  kIllegalAddress = 700,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kCaptureUnsupported = 900,
};

// The call that fails.
struct Failure {
  std::string function;
  int position = 0;
  int error = 0;
  bool late = false;
  bool happened = false;
};

// A graph, or an executable one.
struct Graph {
  std::shared_ptr<Works> works;
  bool executable = false;
};

struct State {
  std::recursive_mutex mutex;  // work on a stream may ask for its memory
  Memory memory;
  Streams streams;
  std::set<std::shared_ptr<Graph>> graphs;
  int own_streams = 0;  // made by programs, not by tests
  int devices = 1;
  int runtime = 12040;
  int driver = 12040;
  Failure failure;
  std::string log;
};

inline State& state() {
  static State* instance = new State;  // outlives what the process destroys at its end
  return *instance;
}

inline thread_local int current_device = 0;
inline thread_local int last_error = 0;
inline thread_local Stream* captured_here = nullptr;  // by this thread
inline thread_local int capture_mode = 0;             // of this thread: 0 global, 1 its own, 2 relaxed
inline thread_local bool has_context = false;         // from this thread's first call that needs the device on

inline std::lock_guard<std::recursive_mutex> lock() { return std::lock_guard<std::recursive_mutex>(state().mutex); }

// One call of the library: logged, and failed where the test wants it. One that `waits` does so all the same.
template <typename Body>
int call(const std::string& function, const std::string& arguments, Body&& body, bool waits = false) {
  const auto locked = lock();
  state().log += function + (arguments.empty() ? "" : " ") + arguments + "\n";
  static const std::set<std::string> kNeedNoContext = {"GetDevice", "GetDeviceCount", "PointerGetAttributes",
                                                       "RuntimeGetVersion", "DriverGetVersion"};
  has_context = has_context || kNeedNoContext.count(function) == 0;
  Failure& failure = state().failure;
  const bool fails = failure.function == "cuda" + function && !failure.happened && failure.position-- == 0;
  int error = kSuccess;
  if (!fails || failure.late || waits) {
    error = body();
  }
  if (fails) {
    failure.happened = true;
    error = failure.error;
  }
  if (error != kSuccess) {
    last_error = error;
  }
  return error;
}

inline std::string name_of_stream(void* handle) {
  const auto locked = lock();
  const Stream* stream = state().streams.find(handle, current_device);
  return stream == nullptr ? "no stream" : stream->name;
}

inline std::string name_of_event(void* handle) {
  const auto locked = lock();
  const Event* event = state().streams.find_event(handle);
  return event == nullptr ? "no event" : event->name;
}

// What would wait, or take memory, ends this thread's capture, unless the thread is relaxed meanwhile.
inline bool breaks_capture() {
  const bool breaks = captured_here != nullptr && capture_mode != 2;
  if (breaks) {
    captured_here->capturing = 2;
  }
  return breaks;
}

// Null where the handle is not one, or no longer.
inline Stream* usable(void* handle) {
  Stream* stream = state().streams.find(handle, current_device);
  return stream == nullptr || stream->destroyed ? nullptr : stream;
}

}  // namespace fake_cuda
