// Between our shapes and ExecuTorch's tensors.
#pragma once

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include "core/shape.h"

namespace executorch_tensorrt {

// An error, and the tensor as it was, when its memory or its rank does not take the shape.
inline executorch::runtime::Error resize_tensor(executorch::aten::Tensor tensor, const Shape& shape) {
  executorch::aten::SizesType sizes[kMaxRank];
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    sizes[d] = static_cast<executorch::aten::SizesType>(shape[d]);
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
