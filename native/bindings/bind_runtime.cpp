#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "engines/registry.h"
#include "runtime/backend.h"
#include "runtime/request_scope.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {

void bind_runtime(nb::module_& m) {
  m.def("backend_is_registered", &backend_is_registered,
        "Whether this library's delegate answers to 'TensorRTBackend' in this process.");
  m.def("engine_runtimes", &engine_runtimes, "The engine kinds that can run in this process, sorted.");

  m.def("current_request", &current_request, "The calling thread's request.");
  m.def(
      "swap_request",
      [](Request request) {
        const Request previous = current_request();
        set_current_request(request);
        return previous;
      },
      "request"_a, "Sets the calling thread's request and returns the one before.");
}

}  // namespace executorch_tensorrt
