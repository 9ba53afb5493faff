// Prints one JSON object: median nanoseconds of an operation that is too short to time from Python.
//
//   etrt_microbench guard                       enter and leave an OptimizationProfileGuard
//   etrt_microbench selection INPUTS PROFILES   select_profile(), automatic, the last profile fits
//   etrt_microbench profiling MODEL ROWS        Module::forward() by level and tracer, and ETDump's own events
//   etrt_microbench delegate OUTER NESTED ROWS  Module::forward() of a program with one engine, and of that engine
//   alone
//   etrt_microbench instructions MODEL ROWS     nothing to time: calls for Callgrind to count, see instructions.py
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/selection.h"
#include "counting.h"
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

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

template <typename Function>
double ns_per_call(int calls, Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < calls; ++k) {
    function();
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count() / calls;
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
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    outer_ns.push_back(ns_per_call(2000, [&] { keep(outer.forward(inputs).ok()); }));
    nested_ns.push_back(ns_per_call(2000, [&] { keep(nested.execute("profile_0", inputs).ok()); }));
  }
  std::printf("{\"delegate_ns\": %.1f, \"nested_ns\": %.1f}\n", median(outer_ns), median(nested_ns));
  return 0;
}

// An ETDump that counts what delegates log after the fact, which is what layers do.
class CountingETDump final : public executorch::etdump::ETDumpGen {
 public:
  std::size_t logged() const { return logged_; }

  void log_profiling_delegate(const char* name, executorch::runtime::DelegateDebugIntId index, et_timestamp_t start,
                              et_timestamp_t end, const void* metadata, std::size_t metadata_size) override {
    ++logged_;
    executorch::etdump::ETDumpGen::log_profiling_delegate(name, index, start, end, metadata, metadata_size);
  }

  void drop() { std::free(get_etdump_data().buf); }

 private:
  std::size_t logged_ = 0;
};

struct TracedModule {
  TracedModule(const char* path, const char* level, bool traced) {
    auto tracer = traced ? std::make_unique<CountingETDump>() : nullptr;
    etdump = tracer.get();
    module = std::make_unique<Module>(path, Module::LoadMode::File, std::move(tracer));
    executorch::runtime::BackendOptions<1> options;
    check(options.set_option("torchtrt_profile_level", level), "level");
    executorch::runtime::LoadBackendOptionsMap map;
    check(map.set_options("TensorRTBackend", options.view()), "options");
    check(module->load_forward(nullptr, nullptr, &map), "program");
  }

  std::unique_ptr<Module> module;
  CountingETDump* etdump = nullptr;  // owned by module
};

int profiling(const char* path, int rows) {
  std::vector<float> input(static_cast<std::size_t>(rows) * 4, 1.0f);
  const auto x = executorch::extension::from_blob(input.data(), {rows, 4});
  const std::vector<EValue> inputs{EValue(*x)};
  const std::pair<const char*, bool> kinds[] = {{"off", false}, {"off", true}, {"phases", true}, {"layers", true}};
  std::vector<TracedModule> modules;
  for (const auto& [level, traced] : kinds) {
    modules.emplace_back(path, level, traced);
    check(modules.back().module->forward(inputs).error(), level);
  }
  constexpr int kCalls = 500;
  std::vector<double> samples[4];
  std::vector<double> event_ns;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (std::size_t k = 0; k < 4; ++k) {
      samples[k].push_back(ns_per_call(kCalls, [&] { keep(modules[k].module->forward(inputs).ok()); }));
      if (modules[k].etdump != nullptr) {
        modules[k].etdump->drop();
      }
    }
    executorch::etdump::ETDumpGen bare;
    bare.create_event_block("Execute");
    event_ns.push_back(ns_per_call(kCalls, [&] {
      bare.end_profiling_delegate(bare.start_profiling_delegate("torchtrt.enqueue_host", -1), nullptr, 0);
    }));
    std::free(bare.get_etdump_data().buf);
  }
  const double layers = static_cast<double>(modules[3].etdump->logged()) / (kRepeats * kCalls + 1);
  std::printf(
      "{\"off_ns\": %.1f, \"off_traced_ns\": %.1f, \"phases_ns\": %.1f, \"layers_ns\": %.1f, "
      "\"etdump_event_ns\": %.1f, \"layers_per_call\": %.2f}\n",
      median(samples[0]), median(samples[1]), median(samples[2]), median(samples[3]), median(event_ns), layers);
  return 0;
}

std::unique_ptr<OptimizationProfileGuard> guard_of(const std::string& request) {
  if (request == "pinned") {
    return std::make_unique<OptimizationProfileGuard>(1);
  }
  if (request == "auto") {
    return std::unique_ptr<OptimizationProfileGuard>(
        new OptimizationProfileGuard(OptimizationProfileGuard::automatic()));
  }
  return nullptr;
}

// Steady calls at every level and with every request, on float32 [rows, 4]. Prints them in their order.
int instructions(const char* path, int rows) {
  constexpr int kCalls = 100;
  std::vector<float> input(static_cast<std::size_t>(rows) * 4, 1.0f);
  const auto x = executorch::extension::from_blob(input.data(), {rows, 4});
  const std::vector<EValue> inputs{EValue(*x)};
  std::printf("{\"compiler\": \"%s\", \"calls\": %d, \"parts\": [", __VERSION__, kCalls);
  const char* separator = "";
  for (const char* level : {"off", "delegate", "phases", "layers"}) {
    const TracedModule traced(path, level, std::strcmp(level, "off") != 0);
    for (const char* request : {"default", "pinned", "auto"}) {
      const auto guard = guard_of(request);
      check(traced.module->forward(inputs).error(), level);  // what runs once
      counting_begins();
      for (int call = 0; call < kCalls; ++call) {
        keep(traced.module->forward(inputs).ok());
      }
      counting_ends();
      std::printf("%s[\"%s\", \"%s\"]", std::exchange(separator, ", "), level, request);
    }
  }
  std::printf("]}\n");
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
  } else if (name == "profiling" && argc == 4) {
    return profiling(argv[2], std::atoi(argv[3]));
  } else if (name == "delegate" && argc == 5) {
    return delegate(argv[2], argv[3], std::atoi(argv[4]));
  } else if (name == "instructions" && argc == 4) {
    return instructions(argv[2], std::atoi(argv[3]));
  } else {
    std::fprintf(stderr,
                 "usage: etrt_microbench guard | selection INPUTS PROFILES | delegate OUTER NESTED ROWS | "
                 "profiling MODEL ROWS | instructions MODEL ROWS\n");
    return 2;
  }
  return 0;
}
