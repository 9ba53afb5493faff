#include "../cudart.h"
#include "library.h"

using namespace fake_cuda;

extern "C" {

void fake_cuda_reset(int devices) {
  const auto locked = lock();
  state().streams.reset();
  state().devices = devices;
  state().runtime = state().driver = 12040;
  state().failure = {};
  state().log.clear();
  state().memory.reset();
  current_device = last_error = 0;
}
void fake_cuda_set_devices(int devices) {
  const auto locked = lock();
  state().devices = devices;
}
int fake_cuda_current_device() { return current_device; }
void fake_cuda_make_current(int device) { current_device = device; }
void fake_cuda_set_versions(int runtime, int driver) {
  const auto locked = lock();
  state().runtime = runtime;
  state().driver = driver;
}
void fake_cuda_set_free_memory(std::size_t bytes) {
  const auto locked = lock();
  state().memory.set_free(bytes);
}

void* fake_cuda_allocate(std::size_t nbytes, int kind, int device) {
  const auto locked = lock();
  return state().memory.allocate(nbytes, static_cast<Kind>(kind), device);
}
void fake_cuda_free(void* data) {
  const auto locked = lock();
  state().memory.free(data);
}
void* fake_cuda_at(const void* data, std::size_t nbytes) {
  const auto locked = lock();
  return state().memory.at(data, nbytes);
}

void* fake_cuda_stream_create(int device) {
  const auto locked = lock();
  return state().streams.create(device);
}
void* fake_cuda_stream_create_again(void* destroyed) {
  const auto locked = lock();
  return state().streams.create(current_device, destroyed);
}
// CUDA lets what is queued go on.
void fake_cuda_stream_destroy(void* stream) {
  const auto locked = lock();
  state().streams.find(stream, current_device)->destroyed = true;
}
void fake_cuda_set_capturing(void* stream, int status) {
  const auto locked = lock();
  state().streams.find(stream, current_device)->capturing = status;
}
int fake_cuda_capturing(void* stream) {
  const auto locked = lock();
  return state().streams.find(stream, current_device)->capturing;
}
void fake_cuda_enqueue(void* handle, void (*work)(void*), void* argument, void (*release)(void*)) {
  const auto locked = lock();
  Stream* stream = usable(handle);
  if (stream == nullptr) {
    die("work for a stream that is not alive");
  }
  if (!has_context) {
    die("work by the driver in a thread that has no context of the device");
  }
  state().log += "work " + stream->name + "\n";
  const std::shared_ptr<void> owned(argument, release);
  state().streams.add(stream, [=] { work(owned.get()); });
}
int fake_cuda_pending(void* stream) {
  const auto locked = lock();
  return state().streams.find(stream, current_device)->pending;
}
void fake_cuda_run(void* stream) {
  const auto locked = lock();
  state().streams.run(state().streams.find(stream, current_device));
}

void* fake_cuda_queue_of(void* stream) {
  const auto locked = lock();
  return state().streams.find(stream, current_device);
}
int fake_cuda_run_some(void* queue, int count) {
  const auto locked = lock();
  return state().streams.run_some(static_cast<Stream*>(queue), count);
}

void fake_cuda_fail(const char* function, int position, int error, int late) {
  const auto locked = lock();
  state().failure = {function, position, error, late != 0, false};
}
int fake_cuda_failed() {
  const auto locked = lock();
  return state().failure.happened ? 1 : 0;
}

const char* fake_cuda_take_log() {
  static thread_local std::string taken;
  const auto locked = lock();
  taken = std::exchange(state().log, {});
  return taken.c_str();
}

int fake_cuda_allocations() {
  const auto locked = lock();
  return state().memory.num_blocks();
}
int fake_cuda_objects() {
  const auto locked = lock();
  return state().streams.num_live_events() + static_cast<int>(state().graphs.size()) + state().own_streams;
}
int fake_cuda_last_error() { return last_error; }
}
