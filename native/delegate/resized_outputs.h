// ResizedOutputs: the outputs that a call gives other shapes. They get their shapes back unless the call succeeds.
#pragma once

#include <utility>
#include <vector>

#include "engines/tensor_shape.h"

namespace executorch_tensorrt {

class ResizedOutputs {
 public:
  ResizedOutputs() = default;
  ~ResizedOutputs() {
    for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry) {
      (void)resize_tensor(entry->first, entry->second);
    }
  }
  ResizedOutputs(const ResizedOutputs&) = delete;
  ResizedOutputs& operator=(const ResizedOutputs&) = delete;

  // False when the tensor does not take the shape.
  bool resize(const executorch::aten::Tensor& tensor, const Shape& shape) {
    if (has_shape(tensor, shape)) {
      return true;
    }
    before_.emplace_back(tensor, make_shape(tensor.sizes()));
    return resize_tensor(tensor, shape) == executorch::runtime::Error::Ok;
  }

  void keep() { before_.clear(); }

 private:
  std::vector<std::pair<executorch::aten::Tensor, Shape>> before_;
};

}  // namespace executorch_tensorrt
