#include "cpu_world.h"

#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "../delegate.h"
#include "../delegate_metadata.h"
#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"

namespace executorch_tensorrt::testing {

using executorch::runtime::Error;

namespace {

constexpr int kSlots = 3;
constexpr int kStates = 2;
constexpr int kMostThreads = 3;
constexpr int kRowsOfThread = 8;  // of the cache: threads write to rows of their own
constexpr int kCacheRows = 32;
constexpr int kWidth = 4;
constexpr int kAutomaticRequest = -1;

using Cache = std::array<float, kCacheRows * kWidth>;

// Calls that one thread makes, one after the other.
struct Calls {
  int slot = 0;
  int rows = 1;
  int request = kAutomaticRequest;
  int times = 1;
  bool traced = false;

  bool fits() const {
    const int profile = request >= 0 ? request : rows == 1 ? 0 : 1;
    return profile == 0 ? rows == 1 : profile == 1 && rows >= 2 && rows <= kRowsOfThread;
  }
  std::string text() const {
    return std::to_string(times) + " calls of delegate " + std::to_string(slot) + ", " + std::to_string(rows) +
           " rows, " + (request < 0 ? "automatic" : "profile " + std::to_string(request)) + (traced ? ", traced" : "");
  }
};

// All at once: calls, and perhaps a thread that reads a state, and one that sets levels.
struct Together {
  std::vector<Calls> threads;
  int read = -1;
  bool levels = false;
  std::string text() const {
    std::string text;
    for (const Calls& calls : threads) text += (text.empty() ? "" : " | ") + calls.text();
    return text + (read >= 0 ? " | reads state " + std::to_string(read) : "") + (levels ? " | sets levels" : "");
  }
};

class CpuWorld {
 public:
  explicit CpuWorld(const std::string& blob) : blob_(blob) { clear_profiling(); }

  void load(int slot, int state, const std::string& level) {
    delegates_[slot] = std::make_unique<Delegate>(blob_);
    state_of_[slot] = state;
    executorch::runtime::BackendOptions<1> options;
    if (options.set_option("torchtrt_profile_level", level.c_str()) != Error::Ok) {
      throw Wrong("no such level");
    }
    const auto view = options.view();
    const EngineStateGuard guard(states_[state].state);
    if (delegates_[slot]->init({view.data(), view.size()}) != Error::Ok) {
      throw Wrong("a delegate is not loaded: " + take_last_error());
    }
    states_[state].exists = true;
  }

  void unload(int slot) { delegates_[slot].reset(); }

  void write(int number, float value) {
    State& state = states_[number];
    if (!state.exists) return;
    state.holds.fill(value);
    check(state.state.write("cache", state.holds.data(), sizeof(Cache)) == Error::Ok, "a state is not written");
  }

  void reset(int number) {
    State& state = states_[number];
    check(state.state.reset() == Error::Ok, "a state is not reset");
    state.holds.fill(0);
  }

  void together(const Together& step) {
    std::vector<std::thread> threads;
    std::atomic<bool> go{false};  // else the first would be done before the next begins
    const auto start = [&](auto work) {
      threads.emplace_back([&go, work] {
        while (!go) std::this_thread::yield();
        work();
      });
    };
    before_ = {states_[0].holds, states_[1].holds};
    found_.clear();
    plans_.clear();
    for (std::size_t k = 0; k < step.threads.size(); ++k) {
      plans_.push_back(plan(step.threads[k], static_cast<int>(k)));
    }
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      if (delegates_[plans_[k].calls.slot]) start([this, k] { call(plans_[k]); });
    }
    if (step.read >= 0 && states_[step.read].exists) {
      start([this, &step] { read(step.read); });
    }
    if (step.levels) {
      start([] {
        for (const char* level : {"phases", "layers", "off"}) (void)set_profiling(level);
        clear_profiling();
      });
    }
    go = true;
    for (std::thread& thread : threads) thread.join();
    if (!found_.empty()) throw Wrong(found_);
    for (const Plan& plan : plans_) {
      if (delegates_[plan.calls.slot] && plan.calls.fits()) put(plan, plan.calls.times, states_[plan.state].holds);
    }
    compare();
  }

  void end() {
    for (auto& delegate : delegates_) delegate.reset();
    compare();
    clear_profiling();
  }

 private:
  struct State {
    EngineState state;
    Cache holds{};
    bool exists = false;
  };

  // What a thread does, and where it writes.
  struct Plan {
    Calls calls;
    int state = 0;
    int first_row = 0;
    float value = 0;  // of its first call; of the next one more, and so on
  };

  Plan plan(const Calls& calls, int thread) {
    next_value_ += 10;
    return {calls, state_of_[calls.slot], thread * kRowsOfThread, next_value_};
  }

  // The cache after so many of the calls.
  static void put(const Plan& plan, int times, Cache& cache) {
    if (times == 0) return;
    const auto begin = cache.begin() + plan.first_row * kWidth;
    std::fill(begin, begin + plan.calls.rows * kWidth, plan.value + static_cast<float>(times - 1));
  }

  // Whether the sum, of thread `own` after so many of its calls, is that of some moment of the others.
  bool may_be(const float* sum, std::size_t own, int times) const {
    return may_be_from(sum, own, times, 0, before_[plans_[own].state]);
  }
  bool may_be_from(const float* sum, std::size_t own, int times, std::size_t k, Cache cache) const {
    if (k == plans_.size()) {
      for (int column = 0; column < kWidth; ++column) {
        float wanted = 0;
        for (int row = 0; row < kCacheRows; ++row) wanted += cache[static_cast<std::size_t>(row * kWidth + column)];
        if (sum[column] != wanted) return false;
      }
      return true;
    }
    const Plan& plan = plans_[k];
    const bool takes_part = plan.state == plans_[own].state && plan.calls.fits() && delegates_[plan.calls.slot];
    const int first = k == own ? times : 0;
    const int last = k == own ? times : takes_part ? plan.calls.times : 0;
    for (int done = first; done <= last; ++done) {
      Cache after = cache;
      put(plan, done, after);
      if (may_be_from(sum, own, times, k + 1, after)) return true;
    }
    return false;
  }

  void call(const Plan& plan) {
    const Calls& calls = plan.calls;
    const auto own = static_cast<std::size_t>(plan.first_row / kRowsOfThread);
    std::vector<float> rows(static_cast<std::size_t>((calls.rows + 1) * kWidth));
    std::vector<std::int64_t> positions(static_cast<std::size_t>(calls.rows + 1));
    for (int k = 0; k < calls.rows; ++k) {
      positions[static_cast<std::size_t>(k)] = (plan.first_row + k) % kCacheRows;
    }
    DelegateMetadata tracer;
    for (int time = 1; time <= calls.times; ++time) {
      std::fill(rows.begin(), rows.end(), plan.value + static_cast<float>(time - 1));
      std::array<float, kWidth> sum{-1, -1, -1, -1};
      const auto in = executorch::extension::from_blob(rows.data(), {calls.rows, kWidth});
      const auto at =
          executorch::extension::from_blob(positions.data(), {calls.rows}, executorch::aten::ScalarType::Long);
      const auto out = executorch::extension::from_blob(sum.data(), {kWidth});
      Delegate::EValue values[] = {Delegate::EValue(*in), Delegate::EValue(*at), Delegate::EValue(*out)};
      std::vector<Delegate::EValue*> args = {&values[1], &values[0], &values[2]};
      std::optional<OptimizationProfileGuard> pinned;
      const auto run = [&] { return delegates_[calls.slot]->execute(args, calls.traced ? &tracer : nullptr); };
      const auto automatic = [&] {
        const OptimizationProfileGuard guard = OptimizationProfileGuard::automatic();
        return run();
      };
      if (calls.request >= 0) pinned.emplace(calls.request);
      const Error error = pinned ? run() : automatic();
      if (error != (calls.fits() ? Error::Ok : Error::InvalidArgument)) {
        return find("error " + std::to_string(static_cast<int>(error)) + " of " + calls.text() + ": " +
                    take_last_error());
      }
      if (error != Error::Ok ? sum != std::array<float, kWidth>{-1, -1, -1, -1} : !may_be(sum.data(), own, time)) {
        return find("call " + std::to_string(time) + " of " + calls.text() + ": got the sum " + std::to_string(sum[0]) +
                    ", which it is at no moment");
      }
      (void)take_last_error();
    }
  }

  // Every thread's rows are those of one of its calls.
  void read(int number) {
    Cache found;
    if (states_[number].state.read("cache", found.data(), sizeof(Cache)) != Error::Ok) {
      return find("a state is not read: " + take_last_error());
    }
    for (const Plan& plan : plans_) {
      if (plan.state != number || !plan.calls.fits()) continue;
      const auto begin = plan.first_row * kWidth, end = begin + plan.calls.rows * kWidth;
      bool is_of_a_call = false;
      for (int done = 0; done <= plan.calls.times; ++done) {
        Cache wanted = before_[number];
        put(plan, done, wanted);
        is_of_a_call = is_of_a_call || std::equal(found.begin() + begin, found.begin() + end, wanted.begin() + begin);
      }
      if (!is_of_a_call) {
        return find("a state is read between two calls' rows of " + plan.calls.text());
      }
    }
  }

  void compare() {
    for (State& state : states_) {
      Cache found;
      if (!state.exists) continue;
      check(state.state.read("cache", found.data(), sizeof(Cache)) == Error::Ok, "a state is not read");
      for (std::size_t k = 0; k < found.size(); ++k) {
        if (found[k] != state.holds[k]) {
          throw Wrong("the cache's row " + std::to_string(k / kWidth) + ": got " + std::to_string(found[k]) +
                      ", wanted " + std::to_string(state.holds[k]));
        }
      }
    }
  }

  void find(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    found_ += what + "; ";
  }

  static void check(bool right, const std::string& what) {
    if (!right) throw Wrong(what + ": " + take_last_error());
  }

  const std::string& blob_;
  std::array<State, kStates> states_;
  std::array<std::unique_ptr<Delegate>, kSlots> delegates_;
  std::array<int, kSlots> state_of_{};
  float next_value_ = 0;
  std::mutex mutex_;
  std::string found_;
  // Of the threads that run together; they only read them.
  std::array<Cache, kStates> before_{};
  std::vector<Plan> plans_;
};

Calls draw_calls(Draw& draw) {
  Calls calls;
  calls.slot = draw.below(kSlots);
  calls.rows = draw.one_in(2) ? 1 : draw.between(2, kRowsOfThread);
  calls.request = draw.one_in(2) ? kAutomaticRequest : calls.rows == 1 ? 0 : 1;
  calls.times = draw.between(1, 4);
  calls.traced = draw.one_in(3);
  if (draw.one_in(10)) {
    draw.one_in(2) ? calls.rows = kRowsOfThread + 1 : calls.request = draw.between(0, 4);
  }
  return calls;
}

void add_load(Draw& draw, std::vector<Step<CpuWorld>>& steps, int slot) {
  constexpr const char* levels[] = {"off", "phases", "layers"};
  const int state = draw.below(kStates);
  const std::string level = draw.of(levels);
  steps.push_back({"load " + std::to_string(slot) + " with state " + std::to_string(state) + ", level " + level,
                   [=](CpuWorld& world) { world.load(slot, state, level); }});
}

std::vector<Step<CpuWorld>> draw_steps(Draw& draw) {
  std::vector<Step<CpuWorld>> steps;
  for (int slot = 0; slot < kSlots; ++slot) add_load(draw, steps, slot);
  while (steps.size() < 20) {
    const int number = draw.below(kStates), slot = draw.below(kSlots);
    const std::string state = "state " + std::to_string(number);
    switch (draw.below(10)) {
      case 0: {
        const auto value = static_cast<float>(draw.below(50));
        steps.push_back({"write " + state, [=](CpuWorld& world) { world.write(number, value); }});
        break;
      }
      case 1:
        steps.push_back({"reset " + state, [=](CpuWorld& world) { world.reset(number); }});
        break;
      case 2:
        steps.push_back({"unload " + std::to_string(slot), [=](CpuWorld& world) { world.unload(slot); }});
        add_load(draw, steps, slot);
        break;
      default: {
        Together together;
        for (int k = draw.between(1, kMostThreads); k > 0; --k) together.threads.push_back(draw_calls(draw));
        together.read = draw.one_in(2) ? number : -1;
        together.levels = draw.one_in(4);
        steps.push_back({together.text(), [=](CpuWorld& world) { world.together(together); }});
      }
    }
  }
  return steps;
}

}  // namespace

Kind cpu_kind(std::string blob) {
  return make_kind<CpuWorld>("cpu_threads", 1500, draw_steps,
                             [blob = std::move(blob)](std::uint32_t) { return std::make_unique<CpuWorld>(blob); });
}

}  // namespace executorch_tensorrt::testing
