#include "core/shape.h"

namespace executorch_tensorrt {

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    text += (d ? ", " : "") + std::to_string(shape[d]);
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace executorch_tensorrt
