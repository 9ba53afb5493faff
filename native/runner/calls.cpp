#include "runner/calls.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "executorch_tensorrt/optimization_profile_guard.h"
#include "runner/failure.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::EValue;
using Clock = std::chrono::steady_clock;
using Outputs = Result<std::vector<EValue>>;

// Whose turn it is: an index of a group for each call of one round.
std::vector<std::size_t> take_turns(const std::vector<Request>& requests, std::size_t num_sets,
                                    std::vector<CallGroup>& groups) {
  std::vector<std::size_t> turns;
  for (std::size_t turn = 0; turn < std::lcm(requests.size(), num_sets); ++turn) {
    const Request request = requests[turn % requests.size()];
    const std::size_t set = turn % num_sets;
    const auto same = [&](const CallGroup& group) { return group.request == request && group.input_set == set; };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    turns.push_back(static_cast<std::size_t>(found - groups.begin()));
    if (found == groups.end()) {
      groups.push_back({request, set, {}, {}});
    }
  }
  return turns;
}

Outputs execute(CheckedModule& module, const MethodInfo& info, const std::vector<EValue>& inputs, Request request) {
  switch (request.kind) {
    case Request::Kind::kPinned: {
      const OptimizationProfileGuard guard(request.index);
      return module.execute(info, inputs);
    }
    case Request::Kind::kAuto: {
      const auto guard = OptimizationProfileGuard::automatic();
      return module.execute(info, inputs);
    }
    default:
      return module.execute(info, inputs);
  }
}

class Caller {
 public:
  Caller(CheckedModule& module, const MethodInfo& info, const std::vector<InputSet>& inputs)
      : module_(module), info_(info), inputs_(inputs) {}

  // Microseconds.
  double call(CallGroup& group, std::vector<EValue>& outputs) {
    std::optional<SelectionCollector> collector;
    if (group.selections.empty()) {
      collector.emplace();
    }
    const Clock::time_point begin = Clock::now();
    Outputs result = execute(module_, info_, inputs_[group.input_set].values, group.request);
    const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
    throw_if(result.ok() ? Status() : result.status());
    if (collector) {
      group.selections = collector->take();
    }
    outputs = std::move(*result);
    return time.count();
  }

 private:
  CheckedModule& module_;
  const MethodInfo& info_;
  const std::vector<InputSet>& inputs_;
};

}  // namespace

CallResults make_calls(CheckedModule& module, const MethodInfo& info, const std::vector<InputSet>& inputs,
                       const Arguments& arguments) {
  CallResults results;
  const std::vector<std::size_t> turns = take_turns(arguments.requests, inputs.size(), results.groups);
  Caller caller(module, info, inputs);
  const auto call = [&](std::size_t number) {
    CallGroup& group = results.groups[turns[number % turns.size()]];
    const double us = caller.call(group, results.outputs);
    if (results.first_call_us == 0) {
      results.first_call_us = us;
    }
    return std::pair<CallGroup&, double>(group, us);
  };
  for (std::size_t k = 0; k < arguments.warmup * turns.size(); ++k) {
    call(k);
  }
  if (module.etdump() != nullptr) {
    (void)module.etdump()->take();  // what came before the timed calls
  }
  for (std::size_t k = 0; k < arguments.iterations.value_or(turns.size()); ++k) {
    const auto [group, us] = call(k);
    group.times_us.push_back(us);
  }
  return results;
}

}  // namespace executorch_tensorrt
