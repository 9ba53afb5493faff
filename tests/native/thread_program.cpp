// thread_program MODEL ROWS: three threads, each with a Module of its own, run `forward` on ones(ROWS, 4) 300 times, on
// profiles 0 and 1 in turn, the second thread beginning with 1. Two Modules are on the file, the third is on the first
// one's Program. Prints what a thread saw: the sum of the outputs, or what was wrong.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch_tensorrt/last_error.h>
#include <executorch_tensorrt/optimization_profile_guard.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "process/thread_request.h"

using executorch::extension::Module;
using executorch_tensorrt::OptimizationProfileGuard;
using executorch_tensorrt::SelectionCollector;

namespace {

std::string run(Module& module, int rows, int profile) {
  std::vector<float> data(static_cast<std::size_t>(rows) * 4, 1.0f);
  const auto input = executorch::extension::from_blob(data.data(), {rows, 4});
  const OptimizationProfileGuard guard(profile);
  SelectionCollector collector;
  const auto result = module.forward(executorch::runtime::EValue(*input));
  if (!result.ok()) {
    return "error " + executorch_tensorrt::take_last_error();
  }
  if (static_cast<int>(collector.take().at(0).profile) != profile) {
    return "error: another profile";
  }
  const auto& output = result->at(0).toTensor();
  const float* values = output.const_data_ptr<float>();
  return "sum " + std::to_string(std::accumulate(values, values + output.numel(), 0.0));
}

std::string run_often(Module& module, int rows, int first_profile) {
  const std::string first = run(module, rows, first_profile);
  for (int k = 1; k < 300; ++k) {
    if (const std::string next = run(module, rows, (first_profile + k) % 2); next != first) {
      return next + " instead of " + first;
    }
  }
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: thread_program MODEL ROWS\n");
    return 2;
  }
  Module first(argv[1]);
  if (first.load() != executorch::runtime::Error::Ok) {
    return 1;
  }
  Module second(argv[1]);
  Module third(first.program());
  Module* const modules[] = {&first, &second, &third};
  std::string seen[3];
  std::thread threads[3];
  for (int t = 0; t < 3; ++t) {
    threads[t] = std::thread([&, t] { seen[t] = run_often(*modules[t], std::atoi(argv[2]), t % 2); });
  }
  for (int t = 0; t < 3; ++t) {
    threads[t].join();
    std::printf("%s\n", seen[t].c_str());
  }
  return 0;
}
