// DeviceArray: an output that stays on its CUDA device.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/scalar_type.h"
#include "program/method_values.h"

namespace executorch_tensorrt {

struct DeviceArray {
  DeviceOutput output;
  std::vector<std::size_t> shape;
  ScalarType dtype = ScalarType::kUnknown;
  int device = 0;
};

// What __cuda_array_interface__ says; false for an object without it. ValueError, which starts with `label`, unless it
// is row-major, and TypeError where it says nonsense.
struct CudaArrayView {
  void* data = nullptr;
  std::vector<std::int64_t> shape;
  std::string type_name;
  ScalarType dtype = ScalarType::kUnknown;
};
bool view_cuda_array(const std::string& label, const nanobind::object& value, CudaArrayView& view);

// A torch tensor over the same memory, for work on torch's current stream.
nanobind::object to_torch(const DeviceArray& array);

}  // namespace executorch_tensorrt
