#include "bindings/arrays.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <stdexcept>

namespace nb = nanobind;

namespace executorch_tensorrt {
namespace {

using executorch::runtime::EValue;
using executorch::runtime::Tag;

constexpr struct {
  ScalarType type;
  nb::dlpack::dtype_code code;
  std::uint8_t bits;
} kDtypes[] = {
    {ScalarType::kUInt8, nb::dlpack::dtype_code::UInt, 8},
    {ScalarType::kInt8, nb::dlpack::dtype_code::Int, 8},
    {ScalarType::kInt16, nb::dlpack::dtype_code::Int, 16},
    {ScalarType::kInt32, nb::dlpack::dtype_code::Int, 32},
    {ScalarType::kInt64, nb::dlpack::dtype_code::Int, 64},
    {ScalarType::kFloat16, nb::dlpack::dtype_code::Float, 16},
    {ScalarType::kFloat32, nb::dlpack::dtype_code::Float, 32},
    {ScalarType::kFloat64, nb::dlpack::dtype_code::Float, 64},
    {ScalarType::kBool, nb::dlpack::dtype_code::Bool, 8},
    {ScalarType::kBFloat16, nb::dlpack::dtype_code::Bfloat, 16},
};

ScalarType scalar_type_of(nb::dlpack::dtype dtype) {
  for (const auto& entry : kDtypes) {
    if (static_cast<std::uint8_t>(entry.code) == dtype.code && entry.bits == dtype.bits && dtype.lanes == 1) {
      return entry.type;
    }
  }
  return ScalarType::kUnknown;
}

nb::dlpack::dtype dlpack_dtype(ScalarType type) {
  for (const auto& entry : kDtypes) {
    if (entry.type == type) {
      return {static_cast<std::uint8_t>(entry.code), entry.bits, 1};
    }
  }
  throw std::invalid_argument("an output has an element type that DLPack does not know");
}

[[noreturn]] void wrong_type(const std::string& label, const nb::object& arg, const char* allowed) {
  const auto name = nb::cast<std::string>(nb::handle(Py_TYPE(arg.ptr())).attr("__name__"));
  throw nb::type_error((label + ": got " + name + ", allowed " + allowed).c_str());
}

[[noreturn]] void wrong_dtype(const std::string& label, const std::string& got, ScalarType dtype) {
  throw nb::value_error((label + ": got dtype " + got + ", allowed " + std::string(to_string(dtype))).c_str());
}

bool is_contiguous(const nb::ndarray<nb::ro>& array) {
  std::int64_t stride = 1;
  for (std::size_t d = array.ndim(); d-- > 0;) {
    if (array.shape(d) != 1 && array.stride(d) != stride) {
      return false;
    }
    stride *= static_cast<std::int64_t>(array.shape(d));
  }
  return true;
}

// What an array needs before DLPack hands it over: torch refuses tensors that require grad, and we take no strides.
nb::object contiguous(const nb::object& arg) {
  if (nb::hasattr(arg, "detach")) {
    return arg.attr("detach")().attr("contiguous")();
  }
  return nb::module_::import_("numpy").attr("ascontiguousarray")(arg);
}

bool requires_grad(const nb::object& arg) {
  return nb::hasattr(arg, "requires_grad") && nb::cast<bool>(arg.attr("requires_grad"));
}

bool is_number(const nb::object& arg) {
  return PyBool_Check(arg.ptr()) || PyLong_Check(arg.ptr()) || PyFloat_Check(arg.ptr());
}

template <typename T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

// The element that a Python number becomes; a float for an integer tensor, or a type without a C++ twin, is refused.
std::uint64_t number_bits(const std::string& label, const nb::object& arg, ScalarType dtype) {
  switch (dtype) {
    case ScalarType::kFloat32:
      return bits_of(nb::cast<float>(arg));
    case ScalarType::kFloat64:
      return bits_of(nb::cast<double>(arg));
    case ScalarType::kBool:
      if (PyBool_Check(arg.ptr())) {
        return bits_of(nb::cast<bool>(arg));
      }
      break;
    case ScalarType::kInt64:
    case ScalarType::kInt32:
      if (PyLong_Check(arg.ptr())) {
        return dtype == ScalarType::kInt64 ? bits_of(nb::cast<std::int64_t>(arg))
                                           : bits_of(nb::cast<std::int32_t>(arg));
      }
      break;
    default:
      break;
  }
  wrong_dtype(label, nb::cast<std::string>(nb::handle(Py_TYPE(arg.ptr())).attr("__name__")), dtype);
}

}  // namespace

InputArray InputArray::from(const std::string& label, const nb::object& arg, ScalarType dtype) {
  InputArray input;
  if (is_number(arg)) {
    input.number_ = std::make_unique<std::uint64_t>(number_bits(label, arg, dtype));
    input.make_tensor(input.number_.get(), dtype);
    return input;
  }
  input.owner_ = requires_grad(arg) ? contiguous(arg) : arg;
  if (!nb::try_cast(input.owner_, input.array_)) {
    wrong_type(label, arg, "a NumPy array, a tensor with DLPack, or a number");
  }
  if (input.array_.device_type() != nb::device::cpu::value) {
    throw nb::value_error((label + ": got a tensor on a device, allowed CPU tensors").c_str());
  }
  if (const ScalarType got = scalar_type_of(input.array_.dtype()); got != dtype) {
    const auto type = input.array_.dtype();
    wrong_dtype(label,
                got != ScalarType::kUnknown
                    ? std::string(to_string(got))
                    : "code " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits",
                dtype);
  }
  if (!is_contiguous(input.array_)) {
    input.owner_ = contiguous(input.owner_);
    input.array_ = nb::cast<nb::ndarray<nb::ro>>(input.owner_);
  }
  for (std::size_t d = 0; d < input.array_.ndim(); ++d) {
    input.shape_.push_back(static_cast<std::int64_t>(input.array_.shape(d)));
  }
  input.make_tensor(input.array_.data(), dtype);
  return input;
}

void InputArray::make_tensor(const void* data, ScalarType dtype) {
  std::vector<executorch::aten::SizesType> sizes;
  for (const std::int64_t dim : shape_) {
    if (dim > INT32_MAX) {
      throw nb::value_error("a dim does not fit 32 bits");
    }
    sizes.push_back(static_cast<executorch::aten::SizesType>(dim));
  }
  tensor_ = executorch::extension::make_tensor_ptr(std::move(sizes), const_cast<void*>(data),
                                                   static_cast<executorch::aten::ScalarType>(dtype));
}

EValue scalar_input(const std::string& label, const nb::object& arg, Tag tag) {
  switch (tag) {
    case Tag::Int:
      if (PyLong_Check(arg.ptr())) {
        return EValue(nb::cast<std::int64_t>(arg));
      }
      wrong_type(label, arg, "an int");
    case Tag::Double:
      if (PyFloat_Check(arg.ptr()) || PyLong_Check(arg.ptr())) {
        return EValue(nb::cast<double>(arg));
      }
      wrong_type(label, arg, "a float");
    case Tag::Bool:
      if (PyBool_Check(arg.ptr())) {
        return EValue(nb::cast<bool>(arg));
      }
      wrong_type(label, arg, "a bool");
    case Tag::None:
      if (arg.is_none()) {
        return EValue();
      }
      wrong_type(label, arg, "None");
    default:
      throw nb::type_error((label + ": this kind of method input is not supported").c_str());
  }
}

OutputValue copy_output(const EValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (!value.isTensor()) return std::monostate{};
  const executorch::aten::Tensor& tensor = value.toTensor();
  OutputTensor out{nullptr, {}, static_cast<ScalarType>(tensor.scalar_type())};
  for (const auto dim : tensor.sizes()) {
    out.shape.push_back(static_cast<std::size_t>(dim));
  }
  const std::size_t nbytes = tensor.nbytes();
  out.data.reset(new std::uint8_t[nbytes > 0 ? nbytes : 1]);
  if (nbytes > 0) {
    std::memcpy(out.data.get(), tensor.const_data_ptr(), nbytes);
  }
  return out;
}

nb::object to_python(OutputValue value, bool torch) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return nb::int_(*number);
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return nb::bool_(*flag);
  auto* tensor = std::get_if<OutputTensor>(&value);
  if (tensor == nullptr) return nb::none();
  std::uint8_t* data = tensor->data.release();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
  const nb::dlpack::dtype dtype = dlpack_dtype(tensor->dtype);
  const std::size_t rank = tensor->shape.size();
  if (torch) {
    return nb::cast(nb::ndarray<nb::pytorch>(data, rank, tensor->shape.data(), owner, nullptr, dtype));
  }
  if (tensor->dtype == ScalarType::kBFloat16) {
    return nb::cast(nb::ndarray<nb::array_api>(data, rank, tensor->shape.data(), owner, nullptr, dtype));
  }
  return nb::cast(nb::ndarray<nb::numpy>(data, rank, tensor->shape.data(), owner, nullptr, dtype));
}

}  // namespace executorch_tensorrt
