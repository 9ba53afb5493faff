// .npy files: what is accepted is written and read again as the same array.
#include "fuzz.h"
#include "runner/npy.h"

using namespace executorch_tensorrt;

namespace {

std::string row_major(const NpyView& array) {
  std::vector<std::uint8_t> from;
  std::vector<std::uint8_t> to;
  for (std::size_t d = 0; d < array.shape.rank(); ++d) {
    from.push_back(static_cast<std::uint8_t>(array.fortran_order ? array.shape.rank() - 1 - d : d));
    to.push_back(static_cast<std::uint8_t>(d));
  }
  std::string out(array.data.size(), '\0');
  copy_elements(array.shape, element_size(array.dtype), array.data.data(), dense_strides(array.shape, from), out.data(),
                dense_strides(array.shape, to));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto array = parse_npy(text_of(data, size));
  if (!array.ok()) {
    require(!array.status().message().empty());
    return 0;
  }
  // An empty array may have dims that no method takes; the runner compares them with the method's bounds first.
  const std::string elements = array->data.empty() ? "" : row_major(*array);
  const auto file = format_npy(array->dtype, array->shape, elements);
  require(file.ok());
  const auto again = parse_npy(*file);
  require(again.ok() && again->dtype == array->dtype && again->shape == array->shape && again->data == elements);
  require(!again->fortran_order);
  return 0;
}
