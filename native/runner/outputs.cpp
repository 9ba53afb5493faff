#include "runner/outputs.h"

#include <filesystem>
#include <numeric>
#include <system_error>

#include "process/write_file.h"
#include "runner/failure.h"
#include "runner/npy.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::EValue;

template <typename T>
Result<std::string> number(ScalarType dtype, T value) {
  return format_npy(dtype, {}, {reinterpret_cast<const char*>(&value), sizeof(value)});
}

Result<std::string> npy_of(const EValue& value) {
  if (value.isInt()) return number(ScalarType::kInt64, value.toInt());
  if (value.isDouble()) return number(ScalarType::kFloat64, value.toDouble());
  if (value.isBool()) return number(ScalarType::kBool, value.toBool());
  if (!value.isTensor()) return invalid_argument("NumPy lacks its type");
  const executorch::aten::Tensor& tensor = value.toTensor();
  const auto dtype = static_cast<ScalarType>(tensor.scalar_type());
  const Shape shape = make_shape(tensor.sizes());
  std::vector<std::uint8_t> row_major(shape.rank());
  std::iota(row_major.begin(), row_major.end(), std::uint8_t{0});
  std::string data(tensor.nbytes(), '\0');
  copy_elements(shape, element_size(dtype), static_cast<const char*>(tensor.const_data_ptr()),
                {tensor.strides().begin(), tensor.strides().end()}, data.data(), dense_strides(shape, row_major));
  return format_npy(dtype, shape, data);
}

}  // namespace

std::vector<std::string> save_outputs(const std::vector<EValue>& outputs, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw UserError("'" + folder + "': " + error.message());
  }
  std::vector<std::string> paths;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto bytes = npy_of(outputs[o]);
    if (!bytes.ok()) {
      throw UserError("output " + std::to_string(o) + " cannot be saved: " + bytes.status().message() +
                      "; run without --save-outputs.");
    }
    const std::string path = folder + "/output_" + std::to_string(o) + ".npy";
    if (Status status = write_file(path, *bytes); !status.ok()) {
      throw UserError(status.message());
    }
    paths.push_back(path);
  }
  return paths;
}

}  // namespace executorch_tensorrt
