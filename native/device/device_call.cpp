#include "device/device_call.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/text.h"
#include "device/caller_stream.h"

namespace executorch_tensorrt {
namespace {

// What an input or output without elements, or with few, is given as its memory.
constexpr std::size_t kSmallest = 256;

constexpr std::size_t kWide = sizeof(std::int64_t);
constexpr std::size_t kNarrow = sizeof(std::int32_t);

std::string label(const char* side, const std::string& name) { return std::string(side) + " " + quoted(name); }

}  // namespace

StreamWork::StreamWork(const Cuda& cuda, int device, std::size_t num_inputs, std::size_t num_outputs)
    : cuda_(cuda), order_(std::make_shared<StreamOrder>(StreamOrder{cuda, device, {}})) {
  inputs_.reserve(num_inputs);
  outputs_.reserve(num_outputs);
  for (std::size_t k = 0; k < num_inputs; ++k) inputs_.emplace_back(cuda);
  for (std::size_t k = 0; k < num_outputs; ++k) outputs_.emplace_back(cuda);
  copies_.reserve(num_inputs + num_outputs);
}

Result<std::unique_ptr<StreamWork>> StreamWork::create(int device, std::size_t num_inputs, std::size_t num_outputs) {
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
  std::unique_ptr<StreamWork> work(new StreamWork(**cuda, device, num_inputs, num_outputs));
  auto end = DeviceEvent::create(**cuda);
  if (!end.ok()) {
    return end.status();
  }
  work->end_ = std::move(*end);
  return work;
}

StreamWork::~StreamWork() {
  (void)wait();
  for (CudaEvent event : times_) {
    cuda_.ignore(event != nullptr ? cuda_.EventDestroy(event) : 0);
  }
}

bool StreamWork::is_on_last_stream() const {
  const std::optional<CudaStream> named = caller_stream();
  return named && last_.is_on(id_of(cuda_, *named));
}

void StreamWork::mark(std::size_t event, CudaStream stream) {
  const int made = times_[event] == nullptr ? cuda_.EventCreateWithFlags(&times_[event], 0) : 0;
  const int error = made == 0 ? cuda_.EventRecord(times_[event], stream) : made;
  cuda_.ignore(error);
  timed_[event] = error == 0;
}

std::optional<std::uint64_t> StreamWork::take_device_ns() {
  float ms = 0;
  const bool timed[] = {std::exchange(timed_[0], false), std::exchange(timed_[1], false)};
  if (!timed[0] || !timed[1]) {
    return std::nullopt;
  }
  const int error = cuda_.EventElapsedTime(&ms, times_[0], times_[1]);
  cuda_.ignore(error);
  return error == 0 ? std::optional(static_cast<std::uint64_t>(static_cast<double>(ms) * 1e6)) : std::nullopt;
}

Result<DeviceCall> DeviceCall::begin(StreamWork& work, const CallStream& stream) {
  work.copies_.clear();
  work.timed_[0] = work.timed_[1] = false;
  if (Status status = work.order_->last.put_before(stream); !status.ok()) {
    return status;
  }
  return DeviceCall(work, stream);
}

DeviceCall::DeviceCall(DeviceCall&& other) noexcept
    : work_(std::exchange(other.work_, nullptr)),
      cuda_(other.cuda_),
      stream_(other.stream_),
      queued_(std::exchange(other.queued_, false)),
      uses_host_memory_(other.uses_host_memory_),
      returned_early_(other.returned_early_),
      staged_bytes_(other.staged_bytes_) {}

Result<MemoryPlace> DeviceCall::find(const char* side, const std::string& name, const CallerMemory& memory) const {
  Result<MemoryPlace> place = place_of(cuda_, memory.data);
  if (!place.ok()) {
    return Status(place.status().code(), label(side, name) + ": " + place.status().message());
  }
  const int device = work_->device();
  if (place->type == kDevice && place->device != device) {
    return invalid_argument(label(side, name) + " lies on another device: got " + std::to_string(place->device) +
                            ", allowed " + std::to_string(device) + "; copy it there");
  }
  if (!place->is_on_device() && memory.on_device) {
    return invalid_argument(label(side, name) + " is planned on CUDA device " + std::to_string(device) +
                            ", and its memory lies on the host: give device memory, or export without "
                            "skipping the copies at the method's border");
  }
  return place;
}

Status DeviceCall::stage(Place& place, std::size_t nbytes, const std::string& name) {
  if (stream_.is_captured) {
    return invalid_argument("the caller's stream is being captured into a CUDA graph: got " + quoted(name) +
                            ", which the engine has a copy of, allowed inputs and outputs in device memory, of types "
                            "that the engine has, that are not empty; give such ones, or end the capture");
  }
  nbytes = std::max(nbytes, kSmallest);
  if (nbytes <= place.staging.size()) {
    return {};
  }
  if (Status status = work_->wait(); !status.ok()) {
    return status;
  }
  return place.staging.grow(nbytes, "", name);
}

Status DeviceCall::queued(int error, const char* what) {
  queued_ = true;  // also where it failed: nobody knows how far it came
  return cuda_.check(error, what);
}

Status DeviceCall::queue_copy(void* to, const void* from, std::size_t nbytes, CudaCopy direction, const char* what) {
  return queued(cuda_.MemcpyAsync(to, from, nbytes, direction, stream_.handle), what);
}

Result<void*> DeviceCall::input(std::size_t index, const std::string& name, const CallerMemory& memory) {
  Place& place = work_->inputs_[index];
  bool on_device = false;
  if (memory.nbytes > 0) {
    const Result<MemoryPlace> found = find("input", name, memory);
    if (!found.ok()) {
      return found.status();
    }
    on_device = found->is_on_device();
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
  if (!on_device) {
    uses_host_memory_ = true;
    staged_bytes_ += nbytes;
  }
  Status status = memory.narrowed
                      ? narrow_input(place, name, memory, on_device)
                      : queue_copy(place.address, memory.data, nbytes, kHostToDevice, "copying an input to the device");
  if (!status.ok()) {
    return status;
  }
  return place.address;
}

Status DeviceCall::narrow_input(Place& place, const std::string& name, const CallerMemory& memory, bool on_device) {
  const std::size_t count = memory.nbytes / kWide;
  if (on_device) {
    // The low halves, which on the device nobody can check.
    const int error = cuda_.Memcpy2DAsync(place.address, kNarrow, memory.data, kWide, kNarrow, count, kDeviceToDevice,
                                          stream_.handle);
    return queued(error, "narrowing an input");
  }
  const auto* wide = static_cast<const std::int64_t*>(memory.data);
  place.narrowed.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    if (wide[k] < std::numeric_limits<std::int32_t>::min() || wide[k] > std::numeric_limits<std::int32_t>::max()) {
      return invalid_argument(label("input", name) + " element " + std::to_string(k) + ": got " +
                              std::to_string(wide[k]) +
                              ", allowed are numbers of 32 bits, since this TensorRT has no int64");
    }
    place.narrowed[k] = static_cast<std::int32_t>(wide[k]);
  }
  return queue_copy(place.address, place.narrowed.data(), count * kNarrow, kHostToDevice,
                    "copying an input to the device");
}

Result<void*> DeviceCall::output(std::size_t index, const std::string& name, const CallerMemory& memory) {
  Place& place = work_->outputs_[index];
  const bool is_wanted = memory.data != nullptr && memory.nbytes > 0;
  MemoryPlace to;
  if (is_wanted) {
    const Result<MemoryPlace> found = find("output", name, memory);
    if (!found.ok()) {
      return found.status();
    }
    to = *found;
    if (to.is_on_device() && !memory.narrowed) {
      return memory.data;
    }
  }
  if (Status status = stage(place, memory.engine_nbytes(), name); !status.ok()) {
    return status;
  }
  if (is_wanted) {
    if (Status status = add_output_copy(place, name, memory, to); !status.ok()) {
      return status;
    }
  }
  return place.staging.data();
}

Status DeviceCall::add_output_copy(Place& place, const std::string& name, const CallerMemory& memory, MemoryPlace to) {
  const std::size_t nbytes = memory.engine_nbytes();
  uses_host_memory_ = true;
  staged_bytes_ += nbytes;
  Copy copy{memory, &place};
  if (memory.narrowed) {
    place.narrowed.resize(nbytes / kNarrow);
    copy.through = place.narrowed.data();
  } else if (to.type == kUnregistered && nbytes <= kMostPinned) {
    if (Status status = place.pinned.grow(std::max(nbytes, kSmallest), "", name); !status.ok()) {
      return status;
    }
    copy.through = place.pinned.data();
  }
  work_->copies_.push_back(copy);
  return {};
}

Result<void*> DeviceCall::fix_input(std::size_t index, const std::string& name, std::size_t nbytes) {
  Place& place = work_->inputs_[index];
  if (nbytes == 0 || place.address == place.staging.data()) {
    return place.address;
  }
  if (Status status = stage(place, nbytes, name); !status.ok()) {
    return status;
  }
  const void* from = std::exchange(place.address, place.staging.data());
  if (Status status = queue_copy(place.address, from, nbytes, kDeviceToDevice, "copying an input to its own place");
      !status.ok()) {
    return status;
  }
  return place.address;
}

Result<void*> DeviceCall::fix_output(std::size_t index, const std::string& name, void* data, std::size_t nbytes) {
  Place& place = work_->outputs_[index];
  if (nbytes == 0 || data == place.staging.data()) {
    return data;
  }
  if (Status status = stage(place, nbytes, name); !status.ok()) {
    return status;
  }
  work_->copies_.push_back({{data, nbytes, true, false}, &place, true});
  return place.staging.data();
}

void DeviceCall::updates_input(std::size_t index, const CallerMemory& memory) {
  Place& place = work_->inputs_[index];
  if (place.address == place.staging.data() && memory.nbytes > 0) {
    staged_bytes_ += memory.nbytes;
    work_->copies_.push_back({memory, &place});
  }
}

Status DeviceCall::copy(const CallerMemory& to, const void* from) {
  uses_host_memory_ = true;
  return queue_copy(to.data, from, to.nbytes, kWherever, "copying an updated value");
}

Status DeviceCall::copy_back() {
  for (const Copy& copy : work_->copies_) {
    void* const to = copy.through != nullptr ? copy.through : copy.to.data;
    const CudaCopy direction = copy.within_device ? kDeviceToDevice : kDeviceToHost;
    if (Status status = queue_copy(to, copy.from->staging.data(), copy.to.engine_nbytes(), direction,
                                   "copying an output from the device");
        !status.ok()) {
      return status;
    }
  }
  return {};
}

Status DeviceCall::finish() {
  if (stream_.is_captured) {
    return {};
  }
  if (!stream_.is_named || uses_host_memory_) {
    return drain();
  }
  if (Status status = work_->end_->record(stream_.handle); !status.ok()) {
    return status;  // what is queued is waited for when this ends
  }
  work_->order_->last = work_->last_ = {work_->end_, stream_.id};
  returned_early_ = true;
  queued_ = false;
  return {};
}

Status DeviceCall::drain() {
  Status status = cuda_.check(cuda_.StreamSynchronize(stream_.handle), "running the engine");
  queued_ = false;
  if (!status.ok()) {
    return status;
  }
  // The stream was ordered behind what was in flight.
  work_->order_->last = work_->last_ = {};
  for (const Copy& copy : work_->copies_) {
    if (copy.to.narrowed) {
      status = widen(copy);
    } else if (copy.through != nullptr) {
      std::memcpy(copy.to.data, copy.through, copy.to.nbytes);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status DeviceCall::widen(const Copy& copy) {
  const std::vector<std::int32_t>& narrow = copy.from->narrowed;
  std::vector<std::int64_t>& wide = copy.from->widened;
  wide.assign(narrow.begin(), narrow.end());
  return cuda_.check(cuda_.Memcpy(copy.to.data, wide.data(), copy.to.nbytes, kWherever), "writing an output of int64");
}

void DeviceCall::wait() noexcept {
  if (std::exchange(queued_, false)) {
    cuda_.ignore(cuda_.StreamSynchronize(stream_.handle));
  }
}

}  // namespace executorch_tensorrt
