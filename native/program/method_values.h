// MethodValues: the memory of a loaded method's inputs and outputs that its program plans none for.
#pragma once

#include <executorch/runtime/executor/method.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "device/device_pool.h"
#include "program/method_info.h"

namespace executorch_tensorrt {

class MethodValues {
 public:
  // Gives the method memory for outputs that have none; `method` outlives this.
  static Result<std::unique_ptr<MethodValues>> create(executorch::runtime::Method& method, const MethodInfo& info);

  // The CUDA device that the program wants an input on; none for the host.
  std::optional<int> input_device(std::size_t input) const { return input_devices_[input]; }

  // Inputs on the device, in memory of this where they lie on the host, and new memory for outputs on the device.
  Status prepare(std::vector<executorch::runtime::EValue>& inputs);

  // kInvalidArgument for a number that is not the one that the program has in its place. ExecuTorch's log alone has it.
  Status check_constants(const std::string& label, const std::vector<executorch::runtime::EValue>& inputs) const;

  // The memory of an output on a device, until the next prepare(); null for one on the host.
  const std::shared_ptr<void>& output_block(std::size_t output) const { return outputs_[output].block; }

 private:
  struct Output {
    std::optional<int> device;
    std::size_t nbytes = 0;            // at most
    std::vector<std::uint8_t> memory;  // on the host
    std::shared_ptr<void> block;       // on the device
  };
  struct Staged {
    std::unique_ptr<DeviceBuffer> buffer;
    std::optional<executorch::runtime::EValue> value;
    std::unique_ptr<executorch::aten::TensorImpl> tensor;
  };

  MethodValues(executorch::runtime::Method& method, const MethodInfo& info);
  Status stage(std::size_t input, executorch::runtime::EValue& value);
  Result<DevicePool*> pool(int device);

  executorch::runtime::Method& method_;
  std::vector<std::optional<int>> input_devices_;
  std::vector<Staged> staged_;
  std::vector<Output> outputs_;
  std::map<int, std::shared_ptr<DevicePool>> pools_;
  bool has_device_values_ = false;
};

// Copies an output of a call to the host, wherever it lies.
Status read_output(const executorch::aten::Tensor& tensor, void* to);

}  // namespace executorch_tensorrt
