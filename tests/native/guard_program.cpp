// guard_program MODEL ROWS REQUEST...: runs `forward` on ones(ROWS, 4) once per request ("default", "auto", an index)
// with executorch::extension::Module, and prints a line per run: the sum of the output, or the error.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch_tensorrt/last_error.h>
#include <executorch_tensorrt/optimization_profile_guard.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

using executorch::extension::Module;
using executorch_tensorrt::OptimizationProfileGuard;

namespace {

void run(Module& module, int rows) {
  std::vector<float> data(static_cast<std::size_t>(rows) * 4, 1.0f);
  const auto input = executorch::extension::from_blob(data.data(), {rows, 4});
  const auto result = module.forward(executorch::runtime::EValue(*input));
  if (!result.ok()) {
    std::printf("error %s\n", executorch_tensorrt::take_last_error().c_str());
    return;
  }
  const auto& output = result->at(0).toTensor();
  const float* values = output.const_data_ptr<float>();
  std::printf("sum %.6f\n", std::accumulate(values, values + output.numel(), 0.0));
}

void run_with(Module& module, int rows, const std::string& request) {
  if (request == "default") {
    run(module, rows);
  } else if (request == "auto") {
    const auto guard = OptimizationProfileGuard::automatic();
    run(module, rows);
  } else {
    const OptimizationProfileGuard guard(std::stoi(request));
    run(module, rows);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: guard_program MODEL ROWS REQUEST...\n");
    return 2;
  }
  Module module(argv[1]);
  for (int k = 3; k < argc; ++k) {
    run_with(module, std::atoi(argv[2]), argv[k]);
  }
  return 0;
}
