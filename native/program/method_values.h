// MethodValues: the memory of a loaded method's inputs and outputs that its program plans none for.
#pragma once

#include <executorch/runtime/executor/method.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/internal.h"
#include "core/status.h"
#include "device/device_memory.h"
#include "device/stream_order.h"
#include "program/method_info.h"

namespace executorch_tensorrt {

// An output that stays on its device.
struct DeviceOutput {
  std::shared_ptr<DevicePool::Block> block;  // null for one on the host
  WorkInFlight ready;                        // what it holds is there then
};

class MethodValues {
 public:
  // Gives the method memory for outputs that have none; `method` outlives this.
  static Result<std::unique_ptr<MethodValues>> create(executorch::runtime::Method& method, const MethodInfo& info);
  ETRT_INTERNAL ~MethodValues();

  // The CUDA device that the program wants an input on; none for the host.
  std::optional<int> input_device(std::size_t input) const { return input_devices_[input]; }

  // Before a call: inputs on the device, in memory of this where they lie on the host, and new memory for outputs on
  // the device. The call comes behind the one before, and behind the work that device outputs among its inputs come
  // from.
  Status begin(std::vector<executorch::runtime::EValue>& inputs, const std::vector<DeviceOutput>& from);

  // After it, however it went.
  Status end(bool has_succeeded);

  // kInvalidArgument for a number that is not the one that the program has in its place. ExecuTorch's log alone has it.
  Status check_constants(const std::string& label, const std::vector<executorch::runtime::EValue>& inputs) const;

  // An output of the last call.
  DeviceOutput output(std::size_t output) const { return {outputs_[output].block, ready_}; }

 private:
  struct Output {
    bool is_on_device = false;
    std::size_t nbytes = 0;            // at most
    std::vector<std::uint8_t> memory;  // on the host
    std::shared_ptr<DevicePool::Block> block;
  };
  struct Staged {
    explicit Staged(const Cuda& cuda) : buffer(cuda), pinned(cuda) {}
    DeviceBuffer buffer;
    PinnedBuffer pinned;  // what a small input goes through, so that nobody waits for its copy
    std::unique_ptr<executorch::aten::TensorImpl> tensor;
  };

  MethodValues(executorch::runtime::Method& method, const MethodInfo& info);
  Status mark(WorkInFlight& work);
  Status stage(std::size_t input, executorch::runtime::EValue& value);
  Status copy_in(Staged& staged, const void* from, std::size_t nbytes);
  Status take_output(std::size_t output);
  Result<std::shared_ptr<DeviceEvent>> free_event();

  executorch::runtime::Method& method_;
  std::vector<std::optional<int>> input_devices_;
  std::vector<Output> outputs_;
  std::optional<int> device_;  // of all that lies on one; none for a method on the host

  // From the first call on, of a method with values on a device.
  const Cuda* cuda_ = nullptr;
  std::shared_ptr<DevicePool> pool_;
  std::map<std::size_t, Staged> staged_;              // by input
  std::vector<std::shared_ptr<DeviceEvent>> events_;  // those that nobody else holds are used again
  WorkInFlight copied_;                               // the copies of staged inputs
  WorkInFlight last_;                                 // the last call that returned early
  // Of the call under way, or the last one.
  CallStream stream_;
  bool is_begun_ = false;
  bool stages_ = false;
  std::vector<DeviceOutput> from_;  // that it reads
  WorkInFlight ready_;              // its outputs
};

// Copies an output of a call to the host, wherever it lies.
ETRT_INTERNAL Status read_output(const executorch::aten::Tensor& tensor, void* to);

}  // namespace executorch_tensorrt
