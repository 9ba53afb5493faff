// What the runner tells of its calls.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "program/method_info.h"
#include "runner/arguments.h"
#include "runner/calls.h"
#include "runner/inputs.h"

namespace executorch_tensorrt {

struct Report {
  const Arguments& arguments;
  double load_ms;
  const std::vector<InputSet>& inputs;
  const CallResults& calls;
  std::size_t events_dropped;
  std::vector<std::string> saved;  // paths
};

std::string report_text(const Report& report);

// One object; docs/reference/commands.md describes it.
std::string report_json(const Report& report);

}  // namespace executorch_tensorrt
