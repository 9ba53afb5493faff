#include "bindings/arrays.h"

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "bindings/failure.h"
#include "program/method_values.h"

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

constexpr char kAllowed[] = "a NumPy array of native byte order, a tensor with DLPack, a CUDA array, or a number";

ScalarType scalar_type_of(nb::dlpack::dtype dtype) {
  for (const auto& entry : kDtypes) {
    if (static_cast<std::uint8_t>(entry.code) == dtype.code && entry.bits == dtype.bits && dtype.lanes == 1) {
      return entry.type;
    }
  }
  return ScalarType::kUnknown;
}

std::string dtype_text(const nb::object& arg) {
  const nb::object dtype = arg.attr("dtype");
  return nb::cast<std::string>(nb::str(nb::handle(dtype)));  // str() of an attribute would take it for text
}

[[noreturn]] void wrong_type(const std::string& label, const nb::object& arg, const char* allowed) {
  auto name = nb::cast<std::string>(nb::handle(Py_TYPE(arg.ptr())).attr("__name__"));
  if (nb::hasattr(arg, "dtype")) {
    name += " of dtype " + dtype_text(arg);
  }
  refuse_type(label + ": got " + name + ", allowed " + allowed);
}

// Whether the elements lie in memory without gaps, in `dim_order`.
bool is_dense(const nb::ndarray<nb::ro>& array, const std::vector<std::uint8_t>& dim_order) {
  if (array.size() == 0) {
    return true;
  }
  std::int64_t stride = 1;
  for (std::size_t k = array.ndim(); k-- > 0;) {
    const std::size_t d = dim_order[k];
    if (array.shape(d) != 1 && array.stride(d) != stride) {
      return false;
    }
    stride *= static_cast<std::int64_t>(array.shape(d));
  }
  return true;
}

bool answers_true(const nb::object& arg, const char* method) {
  return nb::hasattr(arg, method) && nb::cast<bool>(arg.attr(method)());
}

// DLPack refuses tensors that require grad, and drops the sign of those that torch negates lazily.
nb::object plain(const nb::object& arg) {
  const bool has_grad = nb::hasattr(arg, "requires_grad") && nb::cast<bool>(arg.attr("requires_grad"));
  const nb::object values = has_grad ? nb::object(arg.attr("detach")()) : arg;
  return answers_true(values, "is_neg") ? values.attr("resolve_neg")() : values;
}

// A copy whose dims lie in memory in the given order: its first dim is dim_order[0], and so on.
nb::object in_dim_order(const nb::object& arg, const std::vector<std::uint8_t>& dim_order) {
  nb::list order;
  for (const std::uint8_t dim : dim_order) {
    order.append(static_cast<int>(dim));
  }
  if (nb::hasattr(arg, "permute")) {
    return arg.attr("permute")(order).attr("contiguous")();
  }
  const nb::module_ numpy = nb::module_::import_("numpy");
  return numpy.attr("ascontiguousarray")(numpy.attr("transpose")(arg, order));
}

// Whether a copy that the caller's library made is that which in_dim_order() asks for.
bool is_in_dim_order(const nb::ndarray<nb::ro>& copy, const nb::ndarray<nb::ro>& of,
                     const std::vector<std::uint8_t>& dim_order) {
  bool is_alike =
      copy.device_type() == nb::device::cpu::value && copy.dtype() == of.dtype() && copy.ndim() == of.ndim();
  std::vector<std::uint8_t> row_major;
  for (std::size_t d = 0; is_alike && d < of.ndim(); ++d) {
    is_alike = copy.shape(d) == of.shape(dim_order[d]);
    row_major.push_back(static_cast<std::uint8_t>(d));
  }
  return is_alike && is_dense(copy, row_major);
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
  const bool is_int = PyLong_Check(arg.ptr()) && !PyBool_Check(arg.ptr());
  std::uint64_t bits = 0;
  const auto convert = [&](auto value, bool allowed) {
    if (!allowed || !nb::try_cast(arg, value)) {
      check(wrong_dtype(label, nb::cast<std::string>(nb::repr(arg)).substr(0, 40), dtype));
    }
    bits = bits_of(value);
  };
  switch (dtype) {
    case ScalarType::kFloat32:
      convert(float{}, true);
      break;
    case ScalarType::kFloat64:
      convert(double{}, true);
      break;
    case ScalarType::kBool:
      convert(bool{}, PyBool_Check(arg.ptr()) != 0);
      break;
    case ScalarType::kInt64:
      convert(std::int64_t{}, is_int);
      break;
    case ScalarType::kInt32:
      convert(std::int32_t{}, is_int);
      break;
    default:
      convert(bool{}, false);
  }
  return bits;
}

// `name` says what a type is called that is unknown.
template <typename Name>
void check_dtype(const std::string& label, ScalarType got, const TensorMeta& meta, Name&& name) {
  if (got != meta.dtype) {
    check(wrong_dtype(label, got != ScalarType::kUnknown ? std::string(to_string(got)) : name(), meta.dtype));
  }
}

// `got` is negative for a device that is none of CUDA's.
[[noreturn]] void wrong_device(const std::string& label, int got, int allowed) {
  refuse_value(label + ": got a tensor on " + (got < 0 ? "a device" : "CUDA device " + std::to_string(got)) +
               ", allowed a contiguous one on CUDA device " + std::to_string(allowed) + " or on the CPU");
}

// As the caller's library says it, of a type that no tensor of ExecuTorch has, such as complex64.
std::string name_of(const nb::object& arg, nb::dlpack::dtype type) {
  return nb::hasattr(arg, "dtype") ? dtype_text(arg)
                                   : "code " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits";
}

}  // namespace

nb::dlpack::dtype dlpack_dtype(ScalarType type) {
  for (const auto& entry : kDtypes) {
    if (entry.type == type) {
      return {static_cast<std::uint8_t>(entry.code), entry.bits, 1};
    }
  }
  throw std::invalid_argument("an output has an element type that DLPack does not know");
}

InputArray InputArray::from(const std::string& label, const nb::object& arg, const TensorMeta& meta,
                            std::optional<int> device) {
  try {
    return convert(label, arg, meta, device);
  } catch (const std::bad_cast&) {  // what the array says of itself is of another type
    wrong_type(label, arg, kAllowed);
  }
}

InputArray InputArray::convert(const std::string& label, const nb::object& arg, const TensorMeta& meta,
                               std::optional<int> device) {
  InputArray input;
  if (is_number(arg)) {
    input.number_ = std::make_unique<std::uint64_t>(number_bits(label, arg, meta.dtype));
    check(check_bounds(label, {}, meta));
    input.make_tensor(input.number_.get(), meta);
    return input;
  }
  if (const DeviceArray* own = nullptr; device && nb::try_cast(arg, own, false) && own != nullptr) {
    input.owner_ = arg;
    input.source_ = own->output;
    check_dtype(label, own->dtype, meta, [] { return std::string(); });
    if (own->device != *device) {
      wrong_device(label, own->device, *device);
    }
    input.take_device_array(label, {own->output.block->data(), {own->shape.begin(), own->shape.end()}, {}, own->dtype},
                            meta, device);
    return input;
  }
  // Before DLPack, which costs more.
  if (CudaArrayView view; device && view_cuda_array(label, arg, view)) {
    input.owner_ = arg;
    check_dtype(label, view.dtype, meta, [&] { return view.type_name; });
    input.take_device_array(label, std::move(view), meta, device);
    return input;
  }
  input.owner_ = plain(arg);
  if (!nb::try_cast(input.owner_, input.array_)) {
    if (nb::hasattr(arg, "__cuda_array_interface__")) {
      input.take_device_array(label, {}, meta, device);  // refused: the program has the input on the host
    }
    wrong_type(label, arg, kAllowed);
  }
  const nb::dlpack::dtype type = input.array_.dtype();
  check_dtype(label, scalar_type_of(type), meta, [&] { return name_of(arg, type); });
  for (std::size_t d = 0; d < input.array_.ndim(); ++d) {
    input.shape_.push_back(static_cast<std::int64_t>(input.array_.shape(d)));
  }
  if (input.array_.device_type() != nb::device::cpu::value) {
    const int got = input.array_.device_type() == nb::device::cuda::value ? input.array_.device_id() : -1;
    if (device) {
      check(check_bounds(label, input.shape_, meta));  // its rank, before its strides
    }
    if (device && (got != *device || !is_dense(input.array_, meta.dim_order))) {
      wrong_device(label, got, *device);
    }
    input.take_device_array(label, {const_cast<void*>(input.array_.data()), std::move(input.shape_), {}, meta.dtype},
                            meta, device);
    return input;
  }
  check(check_bounds(label, input.shape_, meta));
  if (!is_dense(input.array_, meta.dim_order)) {
    const auto copy = nb::cast<nb::ndarray<nb::ro>>(in_dim_order(input.owner_, meta.dim_order));
    if (!is_in_dim_order(copy, input.array_, meta.dim_order)) {
      wrong_type(label, arg, "an array that its own library makes contiguous");
    }
    input.array_ = copy;
  }
  input.make_tensor(input.array_.data(), meta);
  return input;
}

void InputArray::take_device_array(const std::string& label, CudaArrayView view, const TensorMeta& meta,
                                   std::optional<int> device) {
  if (!device) {
    refuse_value(label +
                 ": got a tensor on a device, allowed CPU tensors, since the program has this input on the "
                 "host; export with device=\"cuda:0\" to give device tensors, of a model that uses each input in "
                 "one engine alone");
  }
  on_device_ = true;
  shape_ = std::move(view.shape);
  check(check_bounds(label, shape_, meta));
  if (view.data == nullptr && std::find(shape_.begin(), shape_.end(), 0) == shape_.end()) {
    refuse_value(label + ": got a device array at address 0, allowed one that has memory");
  }
  make_tensor(view.data, meta, *device);
}

void InputArray::make_tensor(const void* data, const TensorMeta& meta, int device) {
  // The bounds of the method have been checked, so dims fit ExecuTorch's 32 bits.
  const std::vector<executorch::aten::SizesType> sizes(shape_.begin(), shape_.end());
  using executorch::runtime::etensor::DeviceType;
  const executorch::aten::Device place(on_device_ ? DeviceType::CUDA : DeviceType::CPU,
                                       static_cast<executorch::runtime::etensor::DeviceIndex>(device));
  tensor_ = executorch::extension::make_tensor_ptr(sizes, const_cast<void*>(data), meta.dim_order, {},
                                                   static_cast<executorch::aten::ScalarType>(meta.dtype), place);
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
      refuse_type(label + ": this kind of method input is not supported");
  }
}

Result<OutputValue> copy_output(const EValue& value, const DeviceOutput& on_device) {
  if (value.isInt()) return OutputValue(value.toInt());
  if (value.isDouble()) return OutputValue(value.toDouble());
  if (value.isBool()) return OutputValue(value.toBool());
  if (!value.isTensor()) return OutputValue(std::monostate{});
  const executorch::aten::Tensor& tensor = value.toTensor();
  const auto dtype = static_cast<ScalarType>(tensor.scalar_type());
  std::vector<std::size_t> shape;
  for (const auto dim : tensor.sizes()) {
    shape.push_back(static_cast<std::size_t>(dim));
  }
  if (on_device.block) {
    return OutputValue(DeviceArray{on_device, std::move(shape), dtype, tensor.device_index()});
  }
  OutputTensor out{nullptr, std::move(shape), {}, dtype};
  if (!executorch::runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size())) {
    out.strides.assign(tensor.strides().begin(), tensor.strides().end());
  }
  const std::size_t nbytes = tensor.nbytes();
  out.data.reset(new std::uint8_t[nbytes > 0 ? nbytes : 1]);
  if (Status status = read_output(tensor, out.data.get()); !status.ok()) {
    return status;
  }
  return OutputValue(std::move(out));
}

nb::object to_python(OutputValue value, bool torch) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return nb::int_(*number);
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return nb::bool_(*flag);
  if (const auto* array = std::get_if<DeviceArray>(&value)) return torch ? to_torch(*array) : nb::cast(*array);
  auto* tensor = std::get_if<OutputTensor>(&value);
  if (tensor == nullptr) return nb::none();
  std::uint8_t* data = tensor->data.release();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
  const nb::dlpack::dtype dtype = dlpack_dtype(tensor->dtype);
  const std::size_t rank = tensor->shape.size();
  const std::int64_t* strides = tensor->strides.empty() ? nullptr : tensor->strides.data();
  if (torch) {
    return nb::cast(nb::ndarray<nb::pytorch>(data, rank, tensor->shape.data(), owner, strides, dtype));
  }
  if (tensor->dtype == ScalarType::kBFloat16) {
    return nb::cast(nb::ndarray<nb::array_api>(data, rank, tensor->shape.data(), owner, strides, dtype));
  }
  return nb::cast(nb::ndarray<nb::numpy>(data, rank, tensor->shape.data(), owner, strides, dtype));
}

}  // namespace executorch_tensorrt
