#include <executorch/runtime/kernel/operator_registry.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "bindings/bindings.h"
#include "bindings/python_engine.h"
#include "core/event_names.h"
#include "delegate/backend.h"
#include "engines/registry.h"
#include "executorch_tensorrt/backend.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/profiling_control.h"
#include "process/yielding_lock.h"
#include "program/device_allocator.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

void take_lock_without_gil(std::unique_lock<std::mutex>& lock) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) {
    lock.lock();
    return;
  }
  const nb::gil_scoped_release release;
  lock.lock();
}

}  // namespace

void bind_runtime(nb::module_& m) {
  set_take_lock(take_lock_without_gil);
  m.def("backend_is_registered", &backend_is_registered,
        "Whether this library's delegate answers to 'TensorRTBackend' in this process.");
  m.def("backend_problem", &backend_problem, "Why it does not; empty when it does.");
  m.def(
      "event_names", [] { return std::vector<std::string>(std::begin(kEventNames), std::end(kEventNames)); },
      "The events of a delegate's call: of the whole, then of its phases in the order in which they run.");
  m.def(
      "kernel_names",
      [] {
        std::set<std::string> names;
        for (const executorch::runtime::Kernel& kernel : executorch::runtime::get_registered_kernels()) {
          names.emplace(kernel.name_);
        }
        return names;
      },
      "The operators that have a kernel in this process, such as 'aten::add.out'.");
  m.def("tracing_compiled_in", &tracing_compiled_in, "Whether delegates can give events to an event tracer.");
  m.def("register_engine_runtime", &register_python_runtime, "kind"_a, "load"_a,
        nb::sig("def register_engine_runtime(kind: str, load: collections.abc.Callable[..., typing.Any]) -> None"),
        "Load engines of a kind with a function from now on, in place of the kind's runtime before.");
  m.def("engine_runtimes", &engine_runtimes, "The engine kinds that can run in this process, sorted.");
  m.def(
      "device_memory_available", [] { return device_memory_status().ok(); },
      "Whether a program whose memory is planned on a GPU can be loaded in this process.");

  nb::class_<ProfilingState>(m, "ProfilingState", "The process-wide profiling control.")
      .def_ro("is_set", &ProfilingState::is_set)
      .def_ro("level", &ProfilingState::level)
      .def_ro("format", &ProfilingState::format)
      .def_ro("path_prefix", &ProfilingState::path_prefix)
      .def_ro("generation", &ProfilingState::generation);
  m.def(
      "set_profiling",
      [](const std::string& level, const std::string& format, const std::string& path_prefix) {
        if (set_profiling(level, format, path_prefix) != executorch::runtime::Error::Ok) {
          throw nb::value_error(take_last_error().c_str());
        }
      },
      "level"_a, "format"_a, "path_prefix"_a);
  m.def("clear_profiling", &clear_profiling);
  m.def("profiling_state", &profiling_state);
}

}  // namespace executorch_tensorrt
