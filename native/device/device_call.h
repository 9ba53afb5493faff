// StreamWork: what the calls of one engine on a device have in common. DeviceCall: one of them, between the memory of
// its caller, wherever that lies, and the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda.h"
#include "device/device_memory.h"
#include "device/stream_order.h"

namespace executorch_tensorrt {

// An input or output as the caller has it.
struct CallerMemory {
  void* data = nullptr;
  std::size_t nbytes = 0;
  bool on_device = false;  // the program promises that it lies on the device
  bool narrowed = false;   // int64, where the engine has int32

  // Of what the engine has in its place.
  std::size_t engine_nbytes() const { return narrowed ? nbytes / 2 : nbytes; }
};

// The memory that calls are staged in, and the last call. One call at a time; the engine's device is current whenever
// it is used.
class StreamWork {
 public:
  static Result<std::unique_ptr<StreamWork>> create(int device, std::size_t num_inputs, std::size_t num_outputs);
  ~StreamWork();
  StreamWork(const StreamWork&) = delete;
  StreamWork& operator=(const StreamWork&) = delete;

  const Cuda& cuda() const { return cuda_; }
  int device() const { return order_->device; }

  // Calls are ordered behind those of other engines that use the same memory.
  void share(std::shared_ptr<StreamOrder> order) { order_ = std::move(order); }

  // Until no work of this engine's calls is under way.
  Status wait() { return last_.wait(); }

  // Whether the last call's work is known to be done. Does not wait.
  bool is_done() { return last_.is_done(); }

  // Whether a call of this thread would go on the stream on which the last call returned early, which lives then.
  bool is_on_last_stream() const;

  // How long the device worked for the last call that was timed; once, and nothing while it does.
  std::optional<std::uint64_t> take_device_ns();

 private:
  friend class DeviceCall;
  struct Place {
    explicit Place(const Cuda& cuda) : staging(cuda), pinned(cuda) {}
    DeviceBuffer staging;
    PinnedBuffer pinned;                 // what an output goes through
    std::vector<std::int32_t> narrowed;  // on the host
    std::vector<std::int64_t> widened;   // on the host
    void* address = nullptr;             // of the call under way, on the device
  };
  struct Copy {
    CallerMemory to;
    Place* from;
    bool within_device = false;
    void* through = nullptr;  // pinned memory, from which the host copies on
  };

  StreamWork(const Cuda& cuda, int device, std::size_t num_inputs, std::size_t num_outputs);
  void mark(std::size_t event, CudaStream stream);

  const Cuda& cuda_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  std::vector<Copy> copies_;            // of the call under way, behind the engine's work
  std::shared_ptr<DeviceEvent> end_;    // of calls that return early
  WorkInFlight last_;                   // of this engine
  std::shared_ptr<StreamOrder> order_;  // of all that use its memory
  CudaEvent times_[2] = {};             // around the engine's work; only durations are lost without
  bool timed_[2] = {};
};

// Begun, it is ordered behind the calls before. It ends by finish(); wherever it ends otherwise, it waits for what it
// has queued. All that a captured call uses has to stay where it is, so nothing of it is staged.
class DeviceCall {
 public:
  static Result<DeviceCall> begin(StreamWork& work, const CallStream& stream);
  ~DeviceCall() { wait(); }
  DeviceCall(DeviceCall&& other) noexcept;
  DeviceCall& operator=(DeviceCall&&) = delete;

  // The device address to give to the engine. Memory on the host is copied to the device.
  Result<void*> input(std::size_t index, const std::string& name, const CallerMemory& memory);

  // The device address to give to the engine, which writes `nbytes` there; without `memory.data`, to nobody's use.
  Result<void*> output(std::size_t index, const std::string& name, const CallerMemory& memory);

  // Copies an input or output on the device to or from memory that stays where it is from call to call, whose address
  // this returns.
  Result<void*> fix_input(std::size_t index, const std::string& name, std::size_t nbytes);
  Result<void*> fix_output(std::size_t index, const std::string& name, void* data, std::size_t nbytes);

  // The engine updates input `index` in place: memory on the host gets the new value, too.
  void updates_input(std::size_t index, const CallerMemory& memory);

  // To the caller's `to`, on the host or on the device, behind the engine's work.
  Status copy(const CallerMemory& to, const void* from);

  // The engine's own work, which `queue` puts on the stream. What fails from then on leaves work behind.
  template <typename Queue>
  Status run(bool is_timed, Queue&& queue) {
    if (is_timed) {
      work_->mark(0, stream_.handle);
    }
    queued_ = !stream_.is_captured;
    Status status = queue(stream_.handle);
    if (status.ok() && is_timed) {
      work_->mark(1, stream_.handle);
    }
    return status;
  }

  // Outputs to the caller, behind the engine's work.
  Status copy_back();

  // Waits for the work unless the caller named a stream and the host's memory takes no part; then the next call is
  // ordered behind it.
  Status finish();
  bool returned_early() const { return returned_early_; }

  // Until what is queued is over, however it went.
  void wait() noexcept;

  std::size_t staged_bytes() const { return staged_bytes_; }

 private:
  using Place = StreamWork::Place;
  using Copy = StreamWork::Copy;

  DeviceCall(StreamWork& work, const CallStream& stream) : work_(&work), cuda_(work.cuda_), stream_(stream) {}
  Result<MemoryPlace> find(const char* side, const std::string& name, const CallerMemory& memory) const;
  Status stage(Place& place, std::size_t nbytes, const std::string& name);
  Status narrow_input(Place& place, const std::string& name, const CallerMemory& memory, bool on_device);
  Status add_output_copy(Place& place, const std::string& name, const CallerMemory& memory, MemoryPlace to);
  Status queue_copy(void* to, const void* from, std::size_t nbytes, CudaCopy direction, const char* what);
  Status queued(int error, const char* what);
  Status widen(const Copy& copy);
  Status drain();

  StreamWork* work_;  // null once it was moved from
  const Cuda& cuda_;
  CallStream stream_;
  bool queued_ = false;  // it has left work on the stream
  bool uses_host_memory_ = false;
  bool returned_early_ = false;
  std::size_t staged_bytes_ = 0;
};

}  // namespace executorch_tensorrt
