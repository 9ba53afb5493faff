// A CUDA runtime without a GPU, for tests. See cudart.h.
#include <cstring>
#include <optional>

#include "cuda/library.h"

namespace {

using namespace fake_cuda;

struct ErrorText {
  int error;
  const char* name;
  const char* text;
} constexpr kErrors[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {kInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {kNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kNotReady, "cudaErrorNotReady", "device not ready"},
    {kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {kAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered", "part or all of the memory is already mapped"},
    {kNotRegistered, "cudaErrorHostMemoryNotRegistered", "the memory is not mapped"},
    {kIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
};

const ErrorText& text_of(int error) {
  static constexpr ErrorText unknown{-1, "unrecognized error code", "unrecognized error code"};
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) {
      return entry;
    }
  }
  return unknown;
}

constexpr const char* kDirections[] = {"H2H", "H2D", "D2H", "D2D", "wherever"};

// Managed memory is on both sides.
void check_direction(const void* to, const void* from, int kind) {
  const auto fits = [](const void* data, bool device) {
    const Block* block = state().memory.find(data);
    return block != nullptr && block->kind == kManaged ? true : (block != nullptr && block->kind == kDevice) == device;
  };
  if (kind != 4 && !(fits(to, (kind & 1) != 0) && fits(from, (kind & 2) != 0))) {
    die(std::string("a copy said to be ") + kDirections[kind] + " is not");
  }
}

struct Copy {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width;
  std::size_t height;

  void run() const {
    if (height == 0 || width == 0) {
      return;
    }
    char* out = state().memory.at(to, (height - 1) * to_pitch + width);
    const char* in = state().memory.at(from, (height - 1) * from_pitch + width);
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(out + row * to_pitch, in + row * from_pitch, width);
    }
  }
};

int queue_copy(const Copy& copy, int kind, void* handle) {
  Stream* stream = usable(handle);
  if (stream == nullptr) {
    return kInvalidHandle;
  }
  check_direction(copy.to, copy.from, kind);
  state().streams.add(stream, [copy] { copy.run(); });
  return kSuccess;
}

struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
};

// What takes or gives memory, which breaks a capture.
template <typename Body>
int memory_call(const char* function, std::optional<std::size_t> nbytes, Body&& body) {
  return call(function, nbytes ? std::to_string(*nbytes) : "",
              [&]() -> int { return breaks_capture() ? kCaptureUnsupported : body(); });
}

int allocate(void** data, std::size_t nbytes, Kind kind, int device) {
  *data = state().memory.allocate(nbytes, kind, device);
  return *data != nullptr ? kSuccess : kMemoryAllocation;
}

}  // namespace

extern "C" {

int cudaGetDeviceCount(int* count) {
  return call("GetDeviceCount", "", [&]() -> int {
    if (state().driver < state().runtime) {
      return kInsufficientDriver;  // also without any driver
    }
    *count = state().devices;
    return *count > 0 ? kSuccess : kNoDevice;
  });
}
int cudaGetDevice(int* device) {
  return call("GetDevice", "", [&] { return *device = current_device, kSuccess; });
}
int cudaSetDevice(int device) {
  return call("SetDevice", std::to_string(device), [&] {
    if (device < 0 || device >= state().devices) {
      return kInvalidDevice;
    }
    return current_device = device, kSuccess;
  });
}
int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return call("DeviceGetAttribute", std::to_string(attribute) + " " + std::to_string(device),
              [&] { return *value = attribute == 75 ? 9 : 0, kSuccess; });
}
int cudaGetDeviceProperties(void* properties, int device) {
  return call("GetDeviceProperties", std::to_string(device), [&] {
    if (device < 0 || device >= state().devices) {
      return kInvalidDevice;
    }
    std::strcpy(static_cast<char*>(properties), "Fake GPU");
    return kSuccess;
  });
}
int cudaRuntimeGetVersion(int* version) {
  return call("RuntimeGetVersion", "", [&] { return *version = state().runtime, kSuccess; });
}
int cudaDriverGetVersion(int* version) {
  return call("DriverGetVersion", "", [&] { return *version = state().driver, kSuccess; });
}
int cudaGetLastError() { return std::exchange(last_error, 0); }
const char* cudaGetErrorName(int error) { return text_of(error).name; }
const char* cudaGetErrorString(int error) { return text_of(error).text; }

int cudaMalloc(void** data, std::size_t nbytes) {
  return memory_call("Malloc", nbytes, [&] { return allocate(data, nbytes, kDevice, current_device); });
}
int cudaFree(void* data) {
  return memory_call("Free", std::nullopt,
                     [&] { return data != nullptr ? state().memory.free(data) : void(), kSuccess; });
}
int cudaMallocHost(void** data, std::size_t nbytes) {
  return memory_call("MallocHost", nbytes, [&] { return allocate(data, nbytes, kHost, 0); });
}
int cudaFreeHost(void* data) {
  return memory_call("FreeHost", std::nullopt, [&] { return state().memory.free(data), kSuccess; });
}
int cudaHostRegister(void* data, std::size_t nbytes, unsigned) {
  return memory_call("HostRegister", nbytes,
                     [&]() -> int { return state().memory.pin(data, nbytes) ? kSuccess : kAlreadyRegistered; });
}
int cudaHostUnregister(void* data) {
  return memory_call("HostUnregister", std::nullopt,
                     [&]() -> int { return state().memory.unpin(data) ? kSuccess : kNotRegistered; });
}
int cudaDeviceSynchronize() {
  const auto body = [&]() -> int {
    if (breaks_capture()) {
      return kCaptureUnsupported;
    }
    state().streams.run_all(current_device);
    return kSuccess;
  };
  return call("DeviceSynchronize", "", body, true);
}
int cudaMemcpy(void* to, const void* from, std::size_t nbytes, int kind) {
  return call("Memcpy", std::string(kDirections[kind]) + " " + std::to_string(nbytes), [&]() -> int {
    if (breaks_capture()) {
      return kCaptureUnsupported;
    }
    state().streams.run(state().streams.find(nullptr, current_device));
    check_direction(to, from, kind);
    Copy{to, nbytes, from, nbytes, nbytes, 1}.run();
    return kSuccess;
  });
}
int cudaMemcpyAsync(void* to, const void* from, std::size_t nbytes, int kind, void* stream) {
  return call("MemcpyAsync",
              std::string(kDirections[kind]) + " " + std::to_string(nbytes) + " " + name_of_stream(stream),
              [&] { return queue_copy({to, nbytes, from, nbytes, nbytes, 1}, kind, stream); });
}
int cudaMemsetAsync(void* data, int value, std::size_t nbytes, void* handle) {
  return call("MemsetAsync", std::to_string(nbytes) + " " + name_of_stream(handle), [&]() -> int {
    Stream* stream = usable(handle);
    if (stream == nullptr) {
      return kInvalidHandle;
    }
    state().streams.add(stream, [=] { std::memset(state().memory.at(data, nbytes), value, nbytes); });
    return kSuccess;
  });
}
int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                      std::size_t height, int kind, void* stream) {
  return call("Memcpy2DAsync",
              std::string(kDirections[kind]) + " " + std::to_string(width) + "x" + std::to_string(height) + " " +
                  name_of_stream(stream),
              [&]() -> int {
                if (width > to_pitch || width > from_pitch) {
                  return kInvalidValue;
                }
                return queue_copy({to, to_pitch, from, from_pitch, width, height}, kind, stream);
              });
}
int cudaPointerGetAttributes(void* result, const void* data) {
  return call("PointerGetAttributes", "", [&] {
    auto* attributes = static_cast<PointerAttributes*>(result);
    const Block* block = state().memory.find(data);
    const bool known = block != nullptr;
    attributes->type = known ? block->kind : kUnregistered;
    attributes->device = known ? block->device : -2;
    attributes->device_pointer = known ? const_cast<void*>(data) : nullptr;
    attributes->host_pointer = known && block->kind != kDevice ? const_cast<void*>(data) : nullptr;
    return kSuccess;
  });
}

int cudaStreamSynchronize(void* handle) {
  const auto body = [&]() -> int {
    Stream* stream = usable(handle);
    if (stream == nullptr) {
      return kInvalidHandle;
    }
    if (stream->captured) {
      stream->capturing = 2;
      return kCaptureUnsupported;
    }
    if (breaks_capture()) {
      return kCaptureUnsupported;
    }
    state().streams.run(stream);
    return kSuccess;
  };
  return call("StreamSynchronize", name_of_stream(handle), body, true);
}
int cudaStreamWaitEvent(void* handle, void* event_handle, unsigned) {
  return call("StreamWaitEvent", name_of_stream(handle) + " " + name_of_event(event_handle), [&]() -> int {
    Stream* stream = usable(handle);
    Event* event = state().streams.find_event(event_handle);
    if (stream == nullptr || event == nullptr) {
      return kInvalidHandle;
    }
    state().streams.add_wait(stream, event);
    return kSuccess;
  });
}
// Not in the log: a handle's number is known without asking the device.
int cudaStreamGetId(void* handle, unsigned long long* id) {
  const auto locked = lock();
  Stream* stream = usable(handle);
  if (stream == nullptr) {
    return last_error = kInvalidHandle;
  }
  if (stream->captured) {  // in every mode, as CUDA 13 has it
    stream->capturing = 2;
    return last_error = kCaptureUnsupported;
  }
  return *id = stream->id, kSuccess;
}
int cudaStreamIsCapturing(void* handle, int* status) {
  return call("StreamIsCapturing", name_of_stream(handle), [&]() -> int {
    const Stream* stream = usable(handle);
    if (stream == nullptr) {
      return kInvalidHandle;
    }
    *status = stream->capturing;
    return kSuccess;
  });
}

int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return call("EventCreateWithFlags", std::to_string(flags),
              [&] { return *event = state().streams.create_event(current_device, (flags & 2) == 0), kSuccess; });
}
int cudaEventDestroy(void* event) {
  return call("EventDestroy", name_of_event(event),
              [&]() -> int { return state().streams.destroy_event(event) ? kSuccess : kInvalidHandle; });
}
int cudaEventRecord(void* event_handle, void* handle) {
  return call("EventRecord", name_of_event(event_handle) + " " + name_of_stream(handle), [&]() -> int {
    Stream* stream = usable(handle);
    Event* event = state().streams.find_event(event_handle);
    if (stream == nullptr || event == nullptr || event->device != stream->device) {
      return kInvalidHandle;
    }
    state().streams.add_record(stream, event);
    return kSuccess;
  });
}
int cudaEventQuery(void* handle) {
  return call("EventQuery", name_of_event(handle), [&]() -> int {
    const Event* event = state().streams.find_event(handle);
    if (breaks_capture()) {
      return kCaptureUnsupported;
    }
    return event == nullptr ? kInvalidHandle : event->is_done() ? kSuccess : kNotReady;
  });
}
int cudaEventSynchronize(void* handle) {
  const auto body = [&]() -> int {
    Event* event = state().streams.find_event(handle);
    if (event == nullptr) {
      return kInvalidHandle;
    }
    if (breaks_capture()) {
      return kCaptureUnsupported;
    }
    state().streams.run(event);
    return kSuccess;
  };
  return call("EventSynchronize", name_of_event(handle), body, true);
}
int cudaEventElapsedTime(float* ms, void* from_handle, void* to_handle) {
  return call("EventElapsedTime", name_of_event(from_handle) + " " + name_of_event(to_handle), [&]() -> int {
    const Event* from = state().streams.find_event(from_handle);
    const Event* to = state().streams.find_event(to_handle);
    if (from == nullptr || to == nullptr || !from->timed || !to->timed || from->recorded == 0 || to->recorded == 0) {
      return kInvalidHandle;
    }
    if (!from->is_done() || !to->is_done()) {
      return kNotReady;
    }
    *ms = static_cast<float>(to->time - from->time);
    return kSuccess;
  });
}
}
