// Between our shapes and ExecuTorch's tensors.
#pragma once

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <limits>

#include "core/shape.h"

namespace executorch_tensorrt {

// An error, and the tensor as it was, when its memory, its rank or ExecuTorch's sizes of 32 bits do not take the shape.
inline executorch::runtime::Error resize_tensor(executorch::aten::Tensor tensor, const Shape& shape) {
  using executorch::aten::SizesType;
  SizesType sizes[kMaxRank];
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 0 || shape[d] > std::numeric_limits<SizesType>::max()) {
      return executorch::runtime::Error::InvalidArgument;
    }
    sizes[d] = static_cast<SizesType>(shape[d]);
  }
  return executorch::runtime::resize_tensor(tensor, {sizes, shape.rank()});
}

inline bool has_shape(const executorch::aten::Tensor& tensor, const Shape& shape) {
  const auto sizes = tensor.sizes();
  if (sizes.size() != shape.rank()) {
    return false;
  }
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (sizes[d] != shape[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace executorch_tensorrt
