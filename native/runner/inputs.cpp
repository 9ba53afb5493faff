#include "runner/inputs.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runner/failure.h"
#include "runner/npy.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::EValue;
using executorch::runtime::Tag;

std::string read_file(const std::string& label, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw UserError(label + ": no file at '" + path + "'" + (errno == EACCES ? " that can be read" : ""));
  }
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// "float32 (64, 4)", "int"
std::string describe(const ValueMeta& meta) {
  if (!meta.tensor) {
    return executorch::runtime::tag_to_string(meta.tag);
  }
  return std::string(to_string(meta.tensor->dtype)) + " " + to_string(make_shape(meta.tensor->sizes));
}

void check_count(std::size_t count, const MethodInfo& info) {
  const std::size_t allowed = info.inputs.size();
  if (allowed == 0 ? count == 0 : count > 0 && count % allowed == 0) {
    return;
  }
  std::string largest;
  for (const ValueMeta& meta : info.inputs) {
    largest += (largest.empty() ? "; the largest it takes are " : ", ") + describe(meta);
  }
  throw UserError("method '" + info.name + "' has another number of inputs: got " + std::to_string(count) +
                  " --input, allowed " + std::to_string(allowed) +
                  ", or a multiple of it for further calls with other inputs" + largest + ".");
}

template <typename T>
T element(const NpyView& array) {
  T value;
  std::memcpy(&value, array.data.data(), sizeof(value));
  return value;
}

// Inputs that are no tensors come as 0-d arrays.
EValue number(const std::string& label, const NpyView& array, Tag tag) {
  const bool is_number = array.shape.rank() == 0;
  if (is_number && tag == Tag::Int && array.dtype == ScalarType::kInt64) return EValue(element<std::int64_t>(array));
  if (is_number && tag == Tag::Double && array.dtype == ScalarType::kFloat64) return EValue(element<double>(array));
  if (is_number && tag == Tag::Bool && array.dtype == ScalarType::kBool) return EValue(array.data[0] != '\0');
  throw UserError(label + ": got " + std::string(to_string(array.dtype)) + " " + to_string(array.shape) +
                  ", allowed a number for its kind " + executorch::runtime::tag_to_string(tag) +
                  ": int64 (), float64 () or bool ()");
}

// A copy in the method's dim order, where ExecuTorch can read it: the file's data is not aligned.
void add_tensor(const std::string& label, const NpyView& array, const TensorMeta& meta, InputSet& out) {
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> order;
  for (std::size_t d = 0; d < array.shape.rank(); ++d) {
    dims.push_back(array.shape[d]);
    order.push_back(static_cast<std::uint8_t>(array.fortran_order ? array.shape.rank() - 1 - d : d));
  }
  if (array.dtype != meta.dtype) {
    throw_if(wrong_dtype(label, to_string(array.dtype), meta.dtype));
  }
  throw_if(check_bounds(label, dims, meta));
  auto memory = std::make_unique<char[]>(array.data.size() + 1);
  copy_elements(array.shape, element_size(array.dtype), array.data.data(), dense_strides(array.shape, order),
                memory.get(), dense_strides(array.shape, meta.dim_order));
  // The bounds of the method have been checked, so dims fit ExecuTorch's 32 bits.
  out.tensors.push_back(executorch::extension::make_tensor_ptr(
      std::vector<executorch::aten::SizesType>(dims.begin(), dims.end()), memory.get(), meta.dim_order, {},
      static_cast<executorch::aten::ScalarType>(meta.dtype)));
  out.memory.push_back(std::move(memory));
  out.values.emplace_back(*out.tensors.back());
}

void add_input(const std::string& option, const std::string& path, const std::string& label, const ValueMeta& meta,
               InputSet& out) {
  const std::string bytes = read_file(option, path);
  const auto array = parse_npy(bytes);
  if (!array.ok()) {
    throw UserError(option + " is no array: got '" + path +
                    "', allowed a .npy file of numbers: " + array.status().message() + "; save it again.");
  }
  out.shapes.push_back(array->shape);
  out.dtypes.push_back(array->dtype);
  if (meta.tag != Tag::Tensor) {
    out.values.push_back(number(label, *array, meta.tag));
  } else if (meta.tensor) {
    add_tensor(label, *array, *meta.tensor, out);
  } else {
    throw UserError(label + " is damaged in the program");
  }
}

}  // namespace

std::vector<InputSet> read_inputs(const std::vector<std::string>& paths, const MethodInfo& info) {
  check_count(paths.size(), info);
  const std::size_t count = info.inputs.size();
  std::vector<InputSet> sets(count == 0 ? 1 : paths.size() / count);
  for (std::size_t k = 0; k < paths.size(); ++k) {
    const std::size_t i = k % count;
    add_input("--input " + std::to_string(k), paths[k], "method '" + info.name + "' input " + std::to_string(i),
              info.inputs[i], sets[k / count]);
  }
  return sets;
}

}  // namespace executorch_tensorrt
