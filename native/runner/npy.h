// NumPy's .npy files: one array of plain numbers, read strictly and written as NumPy writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/scalar_type.h"
#include "core/shape.h"
#include "core/status.h"

namespace executorch_tensorrt {

struct NpyView {
  ScalarType dtype = ScalarType::kUnknown;
  Shape shape;
  bool fortran_order = false;  // the first dim is the innermost
  std::string_view data;       // in the file's bytes; exactly the array's size, and not aligned
};

// Format versions 1.0 to 3.0, little-endian. kInvalidArgument, saying what the file has and what is allowed, for
// anything else, and for more or fewer bytes than the array has.
Result<NpyView> parse_npy(std::string_view bytes);

// The bytes of a file with this row-major array. kInvalidArgument for an element type that NumPy lacks.
Result<std::string> format_npy(ScalarType dtype, const Shape& shape, std::string_view data);

// Copies elements between two orders of the same dims in memory. Strides are in elements.
void copy_elements(const Shape& shape, std::size_t element_size, const char* from,
                   const std::vector<std::int64_t>& from_strides, char* to,
                   const std::vector<std::int64_t>& to_strides);

// Of an array without gaps whose dims lie in memory in this order, the last one innermost.
std::vector<std::int64_t> dense_strides(const Shape& shape, const std::vector<std::uint8_t>& dim_order);

}  // namespace executorch_tensorrt
