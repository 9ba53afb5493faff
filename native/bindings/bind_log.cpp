#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "executorch_tensorrt/last_error.h"
#include "process/log.h"

namespace nb = nanobind;

namespace executorch_tensorrt {
namespace {

// As Python's logging has it.
int number_of(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return 20;
    case LogLevel::kWarning:
      return 30;
    case LogLevel::kError:
      return 40;
  }
  return 40;
}

std::vector<std::pair<int, std::string>> messages() {
  std::vector<std::pair<int, std::string>> out;
  for (LogMessage& message : take_messages()) {
    out.emplace_back(number_of(message.level), std::move(message.text));
  }
  return out;
}

}  // namespace

void bind_log(nb::module_& m) {
  m.def("keep_messages", &keep_messages, "Keeps this library's messages from now on until they are taken.");
  m.def("has_messages", &has_messages);
  m.def("take_messages", &messages, "Levels, as numbers of Python's logging, and texts.");
  m.def("silence_log", &silence_log,
        "Drops what ExecuTorch logs in this process, for programs whose own messages say it.");
  m.def("take_last_error", &take_last_error,
        "Why the last TensorRTBackend delegate that failed on this thread did so; empty when none did since the last "
        "take. For callers of the stock runtime, whose exceptions have no text.");
}

}  // namespace executorch_tensorrt
