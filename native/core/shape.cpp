#include "core/shape.h"

namespace executorch_tensorrt {

bool size_in_bytes(const Shape& shape, std::size_t element_size, std::size_t& nbytes) {
  nbytes = element_size;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 0 || __builtin_mul_overflow(nbytes, static_cast<std::size_t>(shape[d]), &nbytes)) {
      return false;
    }
  }
  return nbytes <= PTRDIFF_MAX;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    text += (d ? ", " : "") + std::to_string(shape[d]);
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace executorch_tensorrt
