// Prints one JSON object: median nanoseconds of an operation that is too short to time from Python.
//
//   etrt_microbench guard                       enter and leave an OptimizationProfileGuard
//   etrt_microbench selection INPUTS PROFILES   select_profile(), automatic, the last profile fits
//   etrt_microbench delegate OUTER NESTED ROWS  Module::forward() of a program with one engine, and of that engine
//   alone
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/selection.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

namespace {

using namespace executorch_tensorrt;

constexpr int kRepeats = 101;
constexpr int kCallsPerRepeat = 20000;

template <typename Function>
double median_ns(Function&& function) {
  std::vector<double> samples;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < kCallsPerRepeat; ++call) {
      function();
    }
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
    samples.push_back(elapsed.count() / kCallsPerRepeat);
  }
  std::nth_element(samples.begin(), samples.begin() + kRepeats / 2, samples.end());
  return samples[kRepeats / 2];
}

// Keeps the compiler from dropping the work.
template <typename T>
void keep(T&& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

double guard() {
  return median_ns([] {
    const OptimizationProfileGuard guard(1);
    keep(&guard);
  });
}

double selection(std::size_t inputs, std::size_t profiles) {
  std::vector<std::string> names;
  std::vector<ProfileRanges> ranges(profiles);
  for (std::size_t i = 0; i < inputs; ++i) {
    names.push_back("input" + std::to_string(i));
    for (std::size_t p = 0; p < profiles; ++p) {
      const auto low = static_cast<std::int64_t>(1 + 100 * p);
      ranges[p].push_back({{1, 1, 1}, {low, low, low + 99}, {64, 64, 64}});
    }
  }
  const ProfileTable table = *ProfileTable::create(names, ranges);
  const auto last = static_cast<std::int64_t>(100 * profiles);
  const std::vector<Shape> shapes(inputs, make_shape(std::vector<std::int64_t>{1, last, 64}));
  return median_ns([&] { keep(*select_profile(table, shapes, Request::automatic())); });
}

using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;

void check(Error error, const char* what) {
  if (error != Error::Ok) {
    std::fprintf(stderr, "%s: %s\n", what, executorch::runtime::to_string(error));
    std::exit(1);
  }
}

// Both sides in turn, on float32 [rows, 4].
int delegate(const char* outer_path, const char* nested_path, int rows) {
  Module outer(outer_path);
  Module nested(nested_path);
  std::vector<float> input(static_cast<std::size_t>(rows) * 4, 1.0f);
  std::vector<float> output(1024);
  const auto x = executorch::extension::from_blob(input.data(), {rows, 4});
  const auto y = executorch::extension::from_blob(output.data(), {8, 4});
  const std::vector<EValue> inputs{EValue(*x)};
  check(nested.load_method("profile_0"), "nested program");
  check(nested.set_output("profile_0", EValue(*y)), "nested output");
  check(outer.forward(inputs).error(), "program");
  check(nested.execute("profile_0", inputs).error(), "nested program");
  std::vector<double> outer_ns;
  std::vector<double> nested_ns;
  const auto time = [&](std::vector<double>& samples, auto&& call) {
    constexpr int kCalls = 2000;
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < kCalls; ++k) {
      call();
    }
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
    samples.push_back(elapsed.count() / kCalls);
  };
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    time(outer_ns, [&] { keep(outer.forward(inputs).ok()); });
    time(nested_ns, [&] { keep(nested.execute("profile_0", inputs).ok()); });
  }
  for (auto* samples : {&outer_ns, &nested_ns}) {
    std::nth_element(samples->begin(), samples->begin() + kRepeats / 2, samples->end());
  }
  std::printf("{\"delegate_ns\": %.1f, \"nested_ns\": %.1f}\n", outer_ns[kRepeats / 2], nested_ns[kRepeats / 2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "guard") {
    std::printf("{\"median_ns\": %.2f}\n", guard());
  } else if (name == "selection" && argc == 4) {
    std::printf("{\"median_ns\": %.2f}\n",
                selection(static_cast<std::size_t>(std::atoi(argv[2])), static_cast<std::size_t>(std::atoi(argv[3]))));
  } else if (name == "delegate" && argc == 5) {
    return delegate(argv[2], argv[3], std::atoi(argv[4]));
  } else {
    std::fprintf(stderr, "usage: etrt_microbench guard | selection INPUTS PROFILES | delegate OUTER NESTED ROWS\n");
    return 2;
  }
  return 0;
}
