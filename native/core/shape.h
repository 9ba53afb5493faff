// Shape: the dims of one tensor, stored inline so that a call allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/internal.h"

namespace executorch_tensorrt {

// ExecuTorch's kTensorDimensionLimit; TensorRT's own limit (8) is lower.
inline constexpr std::size_t kMaxRank = 16;

class Shape {
 public:
  Shape() = default;

  // Dims past kMaxRank are refused by the callers that read untrusted ranks, so resize() only clamps.
  void resize(std::size_t rank) { rank_ = static_cast<std::uint8_t>(rank < kMaxRank ? rank : kMaxRank); }
  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t dim) const { return dims_[dim]; }
  std::int64_t& operator[](std::size_t dim) { return dims_[dim]; }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) {
      return false;
    }
    for (std::size_t d = 0; d < a.rank_; ++d) {
      if (a.dims_[d] != b.dims_[d]) {
        return false;
      }
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::uint8_t rank_ = 0;
};

// From any container of integers, e.g. ExecuTorch's sizes.
template <typename Dims>
void set_dims(Shape& shape, const Dims& dims) {
  shape.resize(dims.size());
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    shape[d] = dims[d];
  }
}

template <typename Dims>
Shape make_shape(const Dims& dims) {
  Shape shape;
  set_dims(shape, dims);
  return shape;
}

// False when a dim is negative or no memory has that size.
bool size_in_bytes(const Shape& shape, std::size_t element_size, std::size_t& nbytes);

// "(1, 64)", "(64,)", "()": as Python prints a tuple.
ETRT_INTERNAL std::string to_string(const Shape& shape);

}  // namespace executorch_tensorrt
