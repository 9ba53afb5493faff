// Python's arrays and scalars as ExecuTorch values, and back.
#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/evalue.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bindings/device_array.h"
#include "core/scalar_type.h"
#include "core/status.h"
#include "program/method_info.h"

namespace executorch_tensorrt {

// A caller's array (NumPy, or anything with DLPack) or number, as a tensor. Not copied when it is contiguous.
class InputArray {
 public:
  // ValueError or TypeError, starting with `label`, unless `arg` is an array that fits `meta`; a Python number becomes
  // a 0-d tensor. An array on the host is copied into the method's dim order if it is not in it. Arrays on the CUDA
  // device `device` are taken as they are; others, and any without a `device`, are refused.
  static InputArray from(const std::string& label, const nanobind::object& arg, const TensorMeta& meta,
                         std::optional<int> device);

  executorch::aten::Tensor tensor() const { return *tensor_; }
  bool on_device() const { return on_device_; }

  // That it is; without a block for others.
  const DeviceOutput& source() const { return source_; }

 private:
  InputArray() = default;
  static InputArray convert(const std::string& label, const nanobind::object& arg, const TensorMeta& meta,
                            std::optional<int> device);
  void make_tensor(const void* data, const TensorMeta& meta, int device = 0);
  void take_device_array(const std::string& label, CudaArrayView view, const TensorMeta& meta,
                         std::optional<int> device);

  nanobind::object owner_;
  nanobind::ndarray<nanobind::ro> array_;
  std::unique_ptr<std::uint64_t> number_;
  std::vector<std::int64_t> shape_;
  executorch::extension::TensorPtr tensor_;
  bool on_device_ = false;
  DeviceOutput source_;
};

// For method inputs that are no tensors. TypeError, starting with `label`, on another kind.
executorch::runtime::EValue scalar_input(const std::string& label, const nanobind::object& arg,
                                         executorch::runtime::Tag tag);

// An output, copied out of the method's memory. Made without the GIL.
struct OutputTensor {
  std::unique_ptr<std::uint8_t[]> data;
  std::vector<std::size_t> shape;
  std::vector<std::int64_t> strides;  // in elements; empty for row-major
  ScalarType dtype;
};
using OutputValue = std::variant<std::monostate, OutputTensor, DeviceArray, std::int64_t, double, bool>;

// Lists and strings, which no exported model returns, become None. With a block, which the output lies in, it stays on
// its device.
Result<OutputValue> copy_output(const executorch::runtime::EValue& value, const DeviceOutput& on_device);

// A NumPy array or, with `torch`, a torch tensor; NumPy has no bfloat16: that becomes a DLPack array. What lies on a
// device becomes a DeviceArray or a torch tensor there.
nanobind::object to_python(OutputValue value, bool torch);

// std::invalid_argument for a type that DLPack does not know.
nanobind::dlpack::dtype dlpack_dtype(ScalarType type);

}  // namespace executorch_tensorrt
