// Runs the prompt on profile 1 and single tokens on profile 0.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch_tensorrt/last_error.h>
#include <executorch_tensorrt/optimization_profile_guard.h>

#include <cstdio>

using executorch::extension::Module;
using executorch_tensorrt::OptimizationProfileGuard;

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "model.pte";
  Module module(path, Module::LoadMode::Mmap);
  if (const auto error = module.load(); error != executorch::runtime::Error::Ok) {
    std::fprintf(stderr, "'%s' can't be loaded: %s; give the path of a program.\n", path, to_string(error));
    return 1;
  }
  for (const int rows : {100, 1, 1}) {
    const OptimizationProfileGuard guard(rows > 1 ? 1 : 0);
    const auto result = module.forward(executorch::extension::ones({1, rows, 64}));
    if (!result.ok()) {
      std::fprintf(stderr, "%s %s\n", to_string(result.error()), executorch_tensorrt::take_last_error().c_str());
      return 1;
    }
    std::printf("%d rows on profile %d: first element %.4f\n", rows, rows > 1 ? 1 : 0,
                result->at(0).toTensor().const_data_ptr<float>()[0]);
  }
  return 0;
}
