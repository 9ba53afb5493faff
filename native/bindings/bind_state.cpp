#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/failure.h"
#include "executorch_tensorrt/engine_state.h"
#include "process/failure.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

void check(Error error) { executorch_tensorrt::check(status_of("using an engine's state", error)); }

nb::bytes read(const EngineState& state, const std::string& name, std::size_t nbytes) {
  std::string data(nbytes, '\0');
  Error error = Error::Ok;
  {
    const nb::gil_scoped_release release;
    error = state.read(name, data.data(), nbytes);
  }
  check(error);
  return nb::bytes(data.data(), data.size());
}

void write(EngineState& state, const std::string& name, const nb::bytes& data) {
  Error error = Error::Ok;
  {
    const nb::gil_scoped_release release;
    error = state.write(name, data.data(), data.size());
  }
  check(error);
}

void reset(EngineState& state) {
  Error error = Error::Ok;
  {
    const nb::gil_scoped_release release;
    error = state.reset();
  }
  check(error);
}

}  // namespace

void bind_state(nb::module_& m) {
  nb::class_<EngineState::Buffer>(m, "EngineBuffer", "A buffer that engines own.")
      .def_ro("name", &EngineState::Buffer::name)
      .def_ro("dtype", &EngineState::Buffer::dtype)
      .def_ro("sizes", &EngineState::Buffer::sizes)
      .def_ro("nbytes", &EngineState::Buffer::nbytes);
  nb::class_<EngineState>(m, "EngineState")
      .def(nb::init<>())
      .def("buffers", &EngineState::buffers, nb::call_guard<nb::gil_scoped_release>())
      .def("reset", &reset)
      .def("read", &read, "name"_a, "nbytes"_a)
      .def("write", &write, "name"_a, "data"_a);
}

}  // namespace executorch_tensorrt
