// The runner's calls: requests and sets of inputs take turns, and every call is timed.
#pragma once

#include <string>
#include <vector>

#include "process/thread_request.h"
#include "program/checked_module.h"
#include "runner/arguments.h"
#include "runner/inputs.h"

namespace executorch_tensorrt {

// Calls with one request on one set of inputs. They all use the same profiles: a selection depends on nothing else.
struct CallGroup {
  Request request;
  std::size_t input_set = 0;
  std::vector<Selection> selections;  // of each engine
  std::vector<double> times_us;       // of the timed calls
};

struct CallResults {
  double first_call_us = 0;
  std::vector<CallGroup> groups;                     // in the order of their first turn
  std::vector<executorch::runtime::EValue> outputs;  // of the last call; valid as long as the module
};

// Throws UserError or RunError when a call fails.
CallResults make_calls(CheckedModule& module, const MethodInfo& info, const std::vector<InputSet>& inputs,
                       const Arguments& arguments);

}  // namespace executorch_tensorrt
