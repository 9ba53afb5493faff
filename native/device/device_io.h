// DeviceIo: between the memory of a caller, wherever it lies, and an engine on a CUDA device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "device/cuda.h"
#include "device/device_buffer.h"
#include "device/device_event.h"
#include "device/shared_order.h"

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

// One call at a time: take_stream(), begin(), the inputs and outputs, the engine's own work on stream(), copy_back(),
// finish(); or abandon(), wherever it failed. The engine's device is current meanwhile.
//
// A stream that the caller captures is not ordered, waited for or marked with events: the work is not done now, but
// whenever his graph runs. All that the graph uses has to be where it stays, so nothing is staged.
class DeviceIo {
 public:
  static Result<std::unique_ptr<DeviceIo>> create(int device, std::size_t num_inputs, std::size_t num_outputs);
  ~DeviceIo();
  DeviceIo(const DeviceIo&) = delete;
  DeviceIo& operator=(const DeviceIo&) = delete;

  int device() const { return device_; }
  const Cuda& cuda() const { return cuda_; }

  // Until no work of earlier calls is under way.
  Status wait();

  // Calls use memory that other engines use as well: they are ordered behind theirs.
  void share(std::shared_ptr<SharedOrder> order) { shared_ = std::move(order); }

  // Takes the caller's stream, else the thread's own.
  Status take_stream();
  CudaStream stream() const { return stream_; }
  bool is_captured() const { return captured_; }

  // Orders the stream behind earlier calls.
  Status begin();

  // The device address to give to the engine. Memory on the host is copied to the device.
  Result<void*> input(std::size_t index, std::string_view name, const CallerMemory& memory);

  // The device address to give to the engine, which writes `nbytes` there; without `memory.data`, to nobody's use.
  Result<void*> output(std::size_t index, std::string_view name, const CallerMemory& memory);

  // Copies an input or output on the device to or from memory that stays where it is from call to call, whose address
  // this returns.
  Result<void*> fix_input(std::size_t index, std::string_view name, std::size_t nbytes);
  Result<void*> fix_output(std::size_t index, std::string_view name, void* data, std::size_t nbytes);

  // The engine updates input `index` in place: memory on the host gets the new value, too.
  void updates_input(std::size_t index, const CallerMemory& memory);

  // To the caller's `to`, on the host or on the device, behind the engine's work.
  Status copy(const CallerMemory& to, const void* from);

  // The engine was asked to work: what fails from here on leaves work behind.
  void enqueued() { queued_ = !captured_; }

  Status copy_back();

  // The engine's work is queued: its end is end_event(), which tells when it was.
  void record_end();

  // Waits for the work unless the caller named a stream and nothing was staged; then the next call is ordered behind
  // it.
  Status finish();
  void abandon() noexcept;

  // Until the work that this call has queued is over, however it went.
  void wait_for_queued() noexcept;

  // Whether the last call's work is known to be done. Does not wait.
  bool is_done();
  bool returned_early() const { return in_flight_.end != nullptr; }
  CudaEvent end_event() const { return end_event_ ? end_event_->get() : nullptr; }

  // Whether a call now would go on the stream on which the last call returned early, which lives then.
  bool is_on_last_stream() const;
  std::size_t staged_bytes() const { return staged_bytes_; }

 private:
  struct Place {
    explicit Place(const Cuda& cuda) : staging(cuda) {}
    DeviceBuffer staging;
    std::vector<std::int32_t> narrowed;  // on the host
    void* address = nullptr;             // of this call, on the device
  };
  struct Copy {
    CallerMemory to;
    Place* from;
    bool within_device = false;
  };

  std::optional<unsigned long long> stream_id(const std::optional<CudaStream>& named) const;
  DeviceIo(const Cuda& cuda, int device, std::size_t num_inputs, std::size_t num_outputs);
  Result<bool> lies_on_device(const char* side, std::string_view name, const CallerMemory& memory);
  Status stage(Place& place, std::size_t nbytes, std::string_view name);
  Status narrow_input(Place& place, std::string_view name, const CallerMemory& memory, bool on_device);
  Status order_behind(const WorkInFlight& work);
  Status queue(int error, const char* what);
  Status widen(const Copy& copy);
  Status drain();

  const Cuda& cuda_;
  const int device_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  std::vector<Copy> copies_;  // of this call, back to the host

  CudaStream stream_ = nullptr;
  bool named_ = false;  // the caller named the stream
  bool captured_ = false;
  bool queued_ = false;  // this call has left work on the stream
  bool end_recorded_ = false;
  bool staged_ = false;  // the host's memory takes part in this call
  std::size_t staged_bytes_ = 0;

  std::shared_ptr<DeviceEvent> in_flight_event_;
  std::shared_ptr<DeviceEvent> timed_event_;     // in its place for calls that are timed, which costs more
  std::shared_ptr<DeviceEvent> end_event_;       // that of the last call that was recorded, one of these
  std::optional<unsigned long long> stream_id_;  // of this call
  WorkInFlight in_flight_;                       // of the last call
  std::shared_ptr<SharedOrder> shared_;          // null unless there is shared memory
};

}  // namespace executorch_tensorrt
