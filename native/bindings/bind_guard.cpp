#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "delegate/engine_buffers.h"
#include "device/caller_stream.h"
#include "executorch_tensorrt/cuda_stream_guard.h"
#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "process/thread_request.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

// What Python enters and exits, any number of times and on any threads: each time is a guard of C++. Those that are
// open when it is collected end as C++'s do.
class PyGuard {
 public:
  using Make = std::function<std::shared_ptr<Guard>()>;

  PyGuard(const char* kind, Make make) : kind_(kind), make_(std::move(make)) {}
  PyGuard(PyGuard&&) = default;
  ~PyGuard() {
    while (!open_.empty()) {
      open_.pop_back();
    }
  }

  void enter() { open_.push_back(make_()); }

  void exit() {
    if (open_.empty()) {
      throw std::runtime_error(std::string(kind_) +
                               ": got an end without a begin, allowed one for each; enter it first");
    }
    const auto own = std::find_if(open_.rbegin(), open_.rend(), [](const auto& g) { return g->is_of_this_thread(); });
    const auto ending = own == open_.rend() ? open_.end() - 1 : own.base() - 1;
    if (const std::string error = (*ending)->end_error(); !error.empty()) {
      throw std::runtime_error(error);
    }
    open_.erase(ending);
  }

 private:
  const char* kind_;
  Make make_;
  std::vector<std::shared_ptr<Guard>> open_;  // in the order of their beginnings
};

PyGuard profile_guard(Request request) {
  return {"OptimizationProfileGuard", [request] {
            return std::shared_ptr<Guard>(request.kind == Request::Kind::kPinned
                                              ? new OptimizationProfileGuard(request.index)
                                              : new OptimizationProfileGuard(OptimizationProfileGuard::automatic()));
          }};
}

PyGuard state_guard(const EngineState& state) {
  return {"EngineStateGuard", [state] { return std::make_shared<EngineStateGuard>(state); }};
}

PyGuard stream_guard(std::uintptr_t stream) {
  return {"CudaStreamGuard", [stream] { return std::make_shared<CudaStreamGuard>(reinterpret_cast<void*>(stream)); }};
}

std::optional<std::uintptr_t> current_stream() {
  const std::optional<CudaStream> stream = caller_stream();
  return stream ? std::optional(reinterpret_cast<std::uintptr_t>(*stream)) : std::nullopt;
}

}  // namespace

void bind_guard(nb::module_& m) {
  nb::class_<PyGuard>(m, "Guard", "A guard of C++ for each time that it is entered.")
      .def("enter", &PyGuard::enter)
      .def("exit", &PyGuard::exit,
           "Ends what this thread entered last. RuntimeError, and no effect, on another thread or while a later guard "
           "of the kind is open.");
  m.def("profile_guard", &profile_guard, "request"_a);
  m.def("state_guard", &state_guard, "state"_a);
  m.def("stream_guard", &stream_guard, "stream"_a);

  m.def("current_request", &current_request, "What the calling thread's guards ask for.");
  m.def("current_stream", &current_stream, "The stream that the calling thread named, if any.");
  m.def(
      "current_state", [] { return reinterpret_cast<std::uintptr_t>(current_engine_buffers().get()); },
      "A number for the state that the calling thread's guards give to methods, 0 for none.");
}

}  // namespace executorch_tensorrt
