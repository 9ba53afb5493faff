#include <nanobind/stl/string.h>

#include "aoti/packaged_engine.h"
#include "aoti/torch_operators.h"
#include "bindings/bindings.h"
#include "bindings/failure.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
void bind_aoti(nb::module_& m) {
  m.def(
      "register_torch_operators", [] { check(register_all_operators()); },
      "Register torch.ops.executorch_tensorrt with the PyTorch of this process.");
  m.def(
      "register_profiling_operators",
      [](const std::string& name_space) { check(register_profiling_operators(name_space)); }, "name_space"_a,
      "Register the profiling operators under another namespace as well.");
  m.def(
      "map_packaged_engine",
      [](const std::string& path, std::size_t offset, std::size_t size, const std::string& digest) {
        Status status;
        {
          const nb::gil_scoped_release release;  // all of its bytes are read
          status = map_packaged_engine(path, offset, size, digest);
        }
        check(status);
      },
      "path"_a, "offset"_a, "size"_a, "digest"_a,
      "Map an engine that lies outside its package's code, for as long as the process lives.");
  m.def("release_packaged_engines", &release_packaged_engines, nb::call_guard<nb::gil_scoped_release>(),
        "Free the engines of packages, and write their traces.");
}

}  // namespace executorch_tensorrt
