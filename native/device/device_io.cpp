#include "device/device_io.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "device/caller_stream.h"
#include "device/known_memory.h"

namespace executorch_tensorrt {
namespace {

constexpr unsigned kDisableTiming = 2;
constexpr int kErrorInvalidValue = 1;

// What an input or output without elements, or with few, is given as its memory.
constexpr std::size_t kSmallest = 256;

constexpr std::size_t kWide = sizeof(std::int64_t);
constexpr std::size_t kNarrow = sizeof(std::int32_t);

std::string quoted(const char* side, std::string_view name) {
  return std::string(side) + " '" + std::string(name) + "'";
}

}  // namespace

DeviceIo::DeviceIo(const Cuda& cuda, int device, std::size_t num_inputs, std::size_t num_outputs)
    : cuda_(cuda), device_(device) {
  inputs_.reserve(num_inputs);
  outputs_.reserve(num_outputs);
  for (std::size_t k = 0; k < num_inputs; ++k) inputs_.emplace_back(cuda);
  for (std::size_t k = 0; k < num_outputs; ++k) outputs_.emplace_back(cuda);
  copies_.reserve(num_inputs + num_outputs);
}

Result<std::unique_ptr<DeviceIo>> DeviceIo::create(int device, std::size_t num_inputs, std::size_t num_outputs) {
  const Result<const Cuda*> cuda = Cuda::get();
  if (!cuda.ok()) {
    return cuda.status();
  }
  if (Status status = (*cuda)->check_device(device); !status.ok()) {
    return status;
  }
  const CudaDeviceScope scope(**cuda, device);
  if (!scope.status().ok()) {
    return scope.status();
  }
  find_executorch_stream();
  std::unique_ptr<DeviceIo> io(new DeviceIo(**cuda, device, num_inputs, num_outputs));
  io->in_flight_event_ = std::make_shared<DeviceEvent>(**cuda);
  const int error = io->in_flight_event_->create(kDisableTiming);
  if (Status status = (*cuda)->check(error, "making an event"); !status.ok()) {
    return status;
  }
  return io;
}

DeviceIo::~DeviceIo() { (void)wait(); }

Result<bool> DeviceIo::lies_on_device(const char* side, std::string_view name, const CallerMemory& memory) {
  std::optional<int> device = known_device_of(memory.data);
  bool on_device = device.has_value();
  if (!on_device) {
    CudaPointerAttributes attributes;
    const int error = cuda_.PointerGetAttributes(&attributes, memory.data);
    if (error == kErrorInvalidValue) {
      cuda_.GetLastError();  // as CUDA 10 has it for memory from malloc()
      attributes.type = kUnregistered;
    } else if (error != 0) {
      return cuda_.check(error, "asking where " + quoted(side, name) + " lies");
    }
    on_device = attributes.type == kDevice || attributes.type == kManaged;
    device = attributes.type == kDevice ? attributes.device : device_;
  }
  if (*device != device_) {
    return invalid_argument(quoted(side, name) + " lies on another device: got " + std::to_string(*device) +
                            ", allowed " + std::to_string(device_) + "; copy it there");
  }
  if (!on_device && memory.on_device) {
    return invalid_argument(quoted(side, name) + " is planned on CUDA device " + std::to_string(device_) +
                            ", and its memory lies on the host: give device memory, or export without "
                            "skipping the copies at the method's border");
  }
  return on_device;
}

Status DeviceIo::stage(Place& place, std::size_t nbytes, std::string_view name) {
  if (captured_) {
    return invalid_argument("the caller's stream is being captured into a CUDA graph: got '" + std::string(name) +
                            "', which the engine has a copy of, allowed inputs and outputs in device memory, of types "
                            "that the engine has, that are not empty; give such ones, or end the capture");
  }
  nbytes = std::max(nbytes, kSmallest);
  if (nbytes > place.staging.size()) {
    if (Status status = wait(); !status.ok()) {
      return status;
    }
  }
  return place.staging.grow(nbytes, "'" + std::string(name) + "'");
}

Status DeviceIo::queue(int error, const char* what) {
  queued_ = true;  // also where it failed: nobody knows how far it came
  return cuda_.check(error, what);
}

Result<void*> DeviceIo::input(std::size_t index, std::string_view name, const CallerMemory& memory) {
  Place& place = inputs_[index];
  bool on_device = false;
  if (memory.nbytes > 0) {
    const Result<bool> lies = lies_on_device("input", name, memory);
    if (!lies.ok()) {
      return lies.status();
    }
    on_device = *lies;
  }
  if (on_device && !memory.narrowed) {
    return place.address = memory.data;
  }
  const std::size_t nbytes = memory.engine_nbytes();
  if (Status status = stage(place, nbytes, name); !status.ok()) {
    return status;
  }
  place.address = place.staging.data();
  if (memory.nbytes == 0) {
    return place.address;
  }
  if (memory.narrowed) {
    if (Status status = narrow_input(place, name, memory, on_device); !status.ok()) {
      return status;
    }
    return place.address;
  }
  staged_ = true;
  staged_bytes_ += nbytes;
  const int error = cuda_.MemcpyAsync(place.address, memory.data, nbytes, kHostToDevice, stream_);
  if (Status status = queue(error, "copying an input to the device"); !status.ok()) {
    return status;
  }
  return place.address;
}

Status DeviceIo::narrow_input(Place& place, std::string_view name, const CallerMemory& memory, bool on_device) {
  const std::size_t count = memory.nbytes / kWide;
  if (on_device) {
    // The low halves, which on the device nobody can check.
    const int error = cuda_.Memcpy2DAsync(place.staging.data(), kNarrow, memory.data, kWide, kNarrow, count,
                                          kDeviceToDevice, stream_);
    return queue(error, "narrowing an input");
  }
  const auto* wide = static_cast<const std::int64_t*>(memory.data);
  place.narrowed.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    if (wide[k] < std::numeric_limits<std::int32_t>::min() || wide[k] > std::numeric_limits<std::int32_t>::max()) {
      return invalid_argument(quoted("input", name) + " element " + std::to_string(k) + ": got " +
                              std::to_string(wide[k]) +
                              ", allowed are numbers of 32 bits, since this TensorRT has no int64");
    }
    place.narrowed[k] = static_cast<std::int32_t>(wide[k]);
  }
  staged_ = true;
  staged_bytes_ += count * kNarrow;
  const int error =
      cuda_.MemcpyAsync(place.staging.data(), place.narrowed.data(), count * kNarrow, kHostToDevice, stream_);
  return queue(error, "copying an input to the device");
}

Result<void*> DeviceIo::output(std::size_t index, std::string_view name, const CallerMemory& memory) {
  Place& place = outputs_[index];
  const bool wanted = memory.data != nullptr && memory.nbytes > 0;
  if (wanted) {
    const Result<bool> on_device = lies_on_device("output", name, memory);
    if (!on_device.ok()) {
      return on_device.status();
    }
    if (*on_device && !memory.narrowed) {
      return memory.data;
    }
  }
  const std::size_t nbytes = memory.engine_nbytes();
  if (Status status = stage(place, nbytes, name); !status.ok()) {
    return status;
  }
  if (wanted) {
    staged_ = true;
    staged_bytes_ += nbytes;
    copies_.push_back({memory, &place, false});
  }
  return place.staging.data();
}

Result<void*> DeviceIo::fix_input(std::size_t index, std::string_view name, std::size_t nbytes) {
  Place& place = inputs_[index];
  if (nbytes == 0 || place.address == place.staging.data()) {
    return place.address;
  }
  if (Status status = stage(place, nbytes, name); !status.ok()) {
    return status;
  }
  const int error = cuda_.MemcpyAsync(place.staging.data(), place.address, nbytes, kDeviceToDevice, stream_);
  place.address = place.staging.data();
  if (Status status = queue(error, "copying an input to a place of its own"); !status.ok()) {
    return status;
  }
  return place.address;
}

Result<void*> DeviceIo::fix_output(std::size_t index, std::string_view name, void* data, std::size_t nbytes) {
  Place& place = outputs_[index];
  if (nbytes == 0 || data == place.staging.data()) {
    return data;
  }
  if (Status status = stage(place, nbytes, name); !status.ok()) {
    return status;
  }
  copies_.push_back({{data, nbytes, true, false}, &place, true});
  return place.staging.data();
}

void DeviceIo::updates_input(std::size_t index, const CallerMemory& memory) {
  Place& place = inputs_[index];
  if (place.address == place.staging.data() && memory.nbytes > 0) {
    staged_bytes_ += memory.nbytes;
    copies_.push_back({memory, &place, false});
  }
}

Status DeviceIo::copy(const CallerMemory& to, const void* from) {
  staged_ = true;
  return queue(cuda_.MemcpyAsync(to.data, from, to.nbytes, kWherever, stream_), "copying an updated value");
}

Status DeviceIo::copy_back() {
  for (const Copy& copy : copies_) {
    void* to = copy.to.data;
    const std::size_t nbytes = copy.to.engine_nbytes();
    if (copy.to.narrowed) {
      copy.from->narrowed.resize(nbytes / kNarrow);
      to = copy.from->narrowed.data();
    }
    const int direction = copy.within_device ? kDeviceToDevice : kDeviceToHost;
    const int error = cuda_.MemcpyAsync(to, copy.from->staging.data(), nbytes, direction, stream_);
    if (Status status = queue(error, "copying an output from the device"); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status DeviceIo::finish() {
  if (captured_) {
    return {};
  }
  const bool early = named_ && !staged_;
  if (early && !end_recorded_) {
    end_event_ = in_flight_event_;
    if (const int error = cuda_.EventRecord(end_event_->get(), stream_); error != 0) {
      return cuda_.check(error, "recording the end of a call");  // the caller abandons, which drains the stream
    }
  }
  if (early) {
    in_flight_ = {end_event_, stream_id_};
    if (shared_) {
      shared_->set_last(in_flight_);
    }
    queued_ = false;
    return {};
  }
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  for (const Copy& copy : copies_) {
    if (Status status = copy.to.narrowed ? widen(copy) : Status(); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status DeviceIo::widen(const Copy& copy) {
  const std::vector<std::int32_t>& narrow = copy.from->narrowed;
  const std::vector<std::int64_t> wide(narrow.begin(), narrow.end());
  return cuda_.check(cuda_.Memcpy(copy.to.data, wide.data(), copy.to.nbytes, kWherever), "writing an output of int64");
}

Status DeviceIo::drain() {
  Status status = cuda_.check(cuda_.StreamSynchronize(stream_), "running the engine");
  queued_ = false;
  if (status.ok()) {
    // The stream was ordered behind what was in flight.
    in_flight_.end = nullptr;
    if (shared_) {
      shared_->set_last({});
    }
  }
  return status;
}

void DeviceIo::wait_for_queued() noexcept {
  if (std::exchange(queued_, false)) {
    cuda_.ignore(cuda_.StreamSynchronize(stream_));
  }
}

void DeviceIo::abandon() noexcept {
  wait_for_queued();
  copies_.clear();
}

}  // namespace executorch_tensorrt
