#include "bindings/device_array.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/failure.h"
#include "device/caller_stream.h"
#include "device/cuda.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

// NumPy's words: kind and size. bfloat16 has none.
constexpr struct {
  ScalarType type;
  const char* name;
} kTypes[] = {{ScalarType::kUInt8, "|u1"},   {ScalarType::kInt8, "|i1"},    {ScalarType::kInt16, "<i2"},
              {ScalarType::kInt32, "<i4"},   {ScalarType::kInt64, "<i8"},   {ScalarType::kFloat16, "<f2"},
              {ScalarType::kFloat32, "<f4"}, {ScalarType::kFloat64, "<f8"}, {ScalarType::kBool, "|b1"}};

template <typename Framework>
nb::object as_ndarray(const DeviceArray& array) {
  using Owner = std::shared_ptr<DevicePool::Block>;
  auto* const owner = new Owner(array.output.block);
  const nb::capsule capsule(owner, [](void* p) noexcept {
    const nb::gil_scoped_release release;  // it may have to wait for the device
    delete static_cast<Owner*>(p);
  });
  return nb::cast(nb::ndarray<Framework>(array.output.block->data(), array.shape.size(), array.shape.data(), capsule,
                                         nullptr, dlpack_dtype(array.dtype), nb::device::cuda::value, array.device));
}

// Runs `wait` without the GIL, with the array's device current.
template <typename Wait>
void settle(const DeviceArray& array, Wait&& wait) {
  Status status;
  {
    const nb::gil_scoped_release release;
    const Result<const Cuda*> cuda = Cuda::get();
    const CudaDeviceScope scope(**cuda, array.device);
    status = scope.status().ok() ? wait(**cuda) : scope.status();
  }
  check(status);
}

// From now on, what is put on `stream` comes behind what the array is made by. A stream that is being captured cannot
// wait for what is outside of the capture.
void hand_over(const DeviceArray& array, CudaStream stream) {
  settle(array, [&](const Cuda& cuda) {
    WorkInFlight ready = array.output.ready;
    int capturing = 0;
    const int error = cuda.StreamIsCapturing(stream, &capturing);
    if (error != 0) {
      return cuda.failure(error, "using the stream that an array is asked for");
    }
    if (capturing != 0) {
      return ready.wait();
    }
    array.output.block->used_on(stream);
    return ready.end ? ready.end->put_before(stream) : Status();
  });
}

// Whoever takes it from here does so on a stream that nobody names, if on any.
void wait_for(const DeviceArray& array) {
  settle(array, [&](const Cuda&) { return WorkInFlight(array.output.ready).wait(); });
}

nb::dict cuda_array_interface(const DeviceArray& array) {
  nb::list shape;
  for (const std::size_t size : array.shape) {
    shape.append(size);
  }
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& entry) { return entry.type == array.dtype; });
  if (type == std::end(kTypes)) {
    throw nb::attribute_error("__cuda_array_interface__ has no bfloat16: use DLPack");
  }
  wait_for(array);
  nb::dict interface;
  interface["shape"] = nb::tuple(shape);
  interface["typestr"] = type->name;
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.output.block->data()), false);
  interface["strides"] = nb::none();
  interface["version"] = 3;
  return interface;
}

// `stream` as the array API has it: that of the consumer, None for CUDA's default stream, -1 for one that needs no
// order.
nb::object dlpack(const DeviceArray& array, const nb::object& stream, const nb::kwargs&) {
  constexpr std::int64_t kNoOrder = -1;
  std::int64_t number = 1;
  if (!stream.is_none() && (PyBool_Check(stream.ptr()) || !nb::try_cast(stream, number) || number < kNoOrder)) {
    throw nb::type_error("__dlpack__: got a stream that is none, allowed None, -1, 1, 2 or a cudaStream_t as an int");
  }
  if (number != kNoOrder) {
    hand_over(array, reinterpret_cast<CudaStream>(static_cast<std::uintptr_t>(number)));
  }
  return as_ndarray<nb::array_api>(array).attr("__dlpack__")();
}

nb::object to_numpy(const DeviceArray& array) {
  std::size_t nbytes = element_size(array.dtype);
  for (const std::size_t size : array.shape) {
    nbytes *= size;
  }
  OutputTensor host{std::unique_ptr<std::uint8_t[]>(new std::uint8_t[std::max<std::size_t>(nbytes, 1)]),
                    array.shape,
                    {},
                    array.dtype};
  settle(array, [&](const Cuda& cuda) {
    return copy_behind_calls(cuda, host.data.get(), array.output.block->data(), nbytes, kDeviceToHost,
                             "copying an array from the device", array.output.ready);
  });
  return to_python(std::move(host), false);
}

// What an array says of itself; it may say anything.
class Interface {
 public:
  Interface(const std::string& label, const nb::object& interface) : label_(label), interface_(interface) {
    if (!nb::isinstance<nb::dict>(interface)) {
      refuse_type(label + ": got a __cuda_array_interface__ that is no dict");
    }
  }

  bool has(const char* key) const { return !find(key).is_none(); }

  template <typename T>
  T get(const char* key, const char* allowed) const {
    T value{};
    if (!nb::try_cast(find(key), value)) {
      refuse(key, allowed);
    }
    return value;
  }

  [[noreturn]] void refuse(const char* key, const char* allowed) const {
    const auto got = nb::cast<std::string>(nb::repr(find(key))).substr(0, 40);
    refuse_type(label_ + ": got " + got + " as '" + key + "' in __cuda_array_interface__, allowed " + allowed);
  }

  const std::string& label() const { return label_; }

 private:
  nb::object find(const char* key) const { return interface_.attr("get")(key); }

  const std::string& label_;
  nb::object interface_;
};

void check_strides(const Interface& interface, const CudaArrayView& view) {
  const auto strides = interface.get<std::vector<std::int64_t>>("strides", "a tuple of bytes for each dim, or None");
  if (strides.size() != view.shape.size()) {
    interface.refuse("strides", "a tuple of bytes for each dim, or None");
  }
  if (std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end()) {
    return;  // of no elements
  }
  auto dense = static_cast<std::int64_t>(element_size(view.dtype));
  bool fits = true;
  for (std::size_t d = strides.size(); d-- > 0;) {
    if (view.shape[d] != 1 && (!fits || strides[d] != dense)) {
      refuse_value(interface.label() +
                   ": got a device array with gaps or in another order, allowed row-major; make it contiguous");
    }
    fits = fits && !__builtin_mul_overflow(dense, view.shape[d], &dense);
  }
}

}  // namespace

bool view_cuda_array(const std::string& label, const nb::object& value, CudaArrayView& view) {
  if (!nb::hasattr(value, "__cuda_array_interface__")) {
    return false;
  }
  const Interface interface(label, value.attr("__cuda_array_interface__"));
  view.data = reinterpret_cast<void*>(
      interface.get<std::pair<std::uintptr_t, nb::object>>("data", "an address and whether it is read-only").first);
  view.shape = interface.get<std::vector<std::int64_t>>("shape", "a tuple of sizes");
  if (std::any_of(view.shape.begin(), view.shape.end(), [](std::int64_t size) { return size < 0; })) {
    interface.refuse("shape", "a tuple of sizes");
  }
  view.type_name = interface.get<std::string>("typestr", "a type as NumPy writes it");
  if (view.type_name.empty()) {
    interface.refuse("typestr", "a type as NumPy writes it");
  }
  for (const auto& entry : kTypes) {
    // The byte order of a single byte is nobody's business.
    if (view.type_name == entry.name || (entry.name[0] == '|' && view.type_name.substr(1) == entry.name + 1)) {
      view.dtype = entry.type;
    }
  }
  if (view.dtype != ScalarType::kUnknown && interface.has("strides")) {
    check_strides(interface, view);
  }
  return true;
}

nb::object to_torch(const DeviceArray& array) {
  if (array.output.ready.end) {
    const nb::object current = nb::module_::import_("torch.cuda").attr("current_stream")(array.device);
    hand_over(array, reinterpret_cast<CudaStream>(nb::cast<std::uintptr_t>(current.attr("cuda_stream"))));
  }
  return as_ndarray<nb::pytorch>(array);
}

void bind_device(nb::module_& m) {
  nb::class_<DeviceArray>(m, "DeviceArray", "An output of a method in the memory of a CUDA device, row-major.")
      .def_prop_ro(
          "shape", [](const DeviceArray& a) { return nb::tuple(nb::cast(a.shape)); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", [](const DeviceArray& a) { return std::string(to_string(a.dtype)); })
      .def_ro("device", &DeviceArray::device, "The index of the CUDA device.")
      .def_prop_ro("__cuda_array_interface__", &cuda_array_interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"))
      .def("__dlpack__", &dlpack, "stream"_a = nb::none(), "kwargs"_a,
           nb::sig("def __dlpack__(self, stream: int | None = None, **kwargs: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__", [](const DeviceArray& a) { return nb::make_tuple(nb::device::cuda::value, a.device); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("numpy", &to_numpy,
           "A copy on the host. Waits for the work that makes it, and for what is queued on the stream that this "
           "thread's guard names.");
}

}  // namespace executorch_tensorrt
