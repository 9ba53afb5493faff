// What of two threads waits for what, and what does not: calls are held at a gate inside the fake engine.
// Boost's macros are not thread-safe: other threads return what they saw.
#include <boost/test/unit_test.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "gate.h"
#include "own_buffers.h"
#include "process/failure.h"
#include "process/log.h"
#include "three_by_three.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

template <typename Function>
auto in_thread(Function&& function) {
  return std::async(std::launch::async, std::forward<Function>(function));
}

// Whether all of `count` calls by `caller` came out right.
bool call(ThreeByThree& caller, Delegate& delegate, int count = 1) {
  for (int k = 0; k < count; ++k) {
    caller.prepare(3);
    if (delegate.execute(caller.args) != Error::Ok || !caller.right()) {
      return false;
    }
  }
  return true;
}

float value_in(const EngineState& state) {
  float both[2] = {-1, -1};
  return state.read("kv", both, sizeof(both)) == Error::Ok && both[0] == both[1] ? both[0] : -1;
}

struct Fixture {
  Fixture() {
    on_fake_enqueue() = [this] { gate.pass(); };
    BOOST_TEST_REQUIRE((one.delegate.init() == Error::Ok));
    BOOST_TEST_REQUIRE((other.delegate.init() == Error::Ok));
  }
  ~Fixture() { on_fake_enqueue() = nullptr; }

  ThreeByThree one;
  ThreeByThree other;
  Gate gate;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(turns, Fixture)

BOOST_AUTO_TEST_CASE(delegates_run_at_the_same_time) {
  gate.close();
  auto first = in_thread([&] { return call(one, one.delegate); });
  auto second = in_thread([&] {
    const OptimizationProfileGuard guard(1);
    return call(other, other.delegate);
  });
  BOOST_TEST(gate.wait_until_inside(2));
  gate.open();
  BOOST_TEST(first.get());
  BOOST_TEST(second.get());
}

BOOST_AUTO_TEST_CASE(calls_of_one_delegate_take_turns) {
  gate.close();
  auto first = in_thread([&] { return call(one, one.delegate, 200); });
  auto second = in_thread([&] { return call(other, one.delegate, 200); });
  BOOST_TEST(gate.wait_until_inside(1));
  gate.open();
  BOOST_TEST(first.get());
  BOOST_TEST(second.get());
  BOOST_TEST(gate.most_inside() == 1);
}

BOOST_AUTO_TEST_CASE(delegates_load_and_end_while_another_runs) {
  gate.close();
  auto running = in_thread([&] { return call(one, one.delegate); });
  BOOST_TEST(gate.wait_until_inside(1));
  other.delegate.destroy();
  BOOST_TEST(fake_log().engines_freed == 1);
  BOOST_TEST((other.delegate.init() == Error::Ok));
  gate.open();
  BOOST_TEST(running.get());
  BOOST_TEST(call(other, other.delegate));
}

BOOST_AUTO_TEST_CASE(delegates_that_share_a_state_take_turns) {
  EngineState state;
  const auto first = load(state);
  const auto second = load(state);
  const auto step_often = [](Delegate& delegate) {
    bool ok = true;
    for (int k = 0; k < 200; ++k) {
      ok = ok && step(delegate) == Error::Ok;
    }
    return ok;
  };
  gate.close();
  auto one_thread = in_thread([&] { return step_often(*first); });
  auto other_thread = in_thread([&] { return step_often(*second); });
  BOOST_TEST(gate.wait_until_inside(1));
  auto reader = in_thread([&] { return value_in(state); });  // waits for the call that writes
  gate.open();
  BOOST_TEST(one_thread.get());
  BOOST_TEST(other_thread.get());
  BOOST_TEST(reader.get() >= 1.0f);
  BOOST_TEST(gate.most_inside() == 1);
  BOOST_TEST(value_in(state) == 400.0f);
}

BOOST_AUTO_TEST_CASE(a_state_guard_is_not_seen_by_another_thread) {
  const EngineState state;
  const EngineStateGuard guard(state);
  BOOST_TEST(in_thread([] { return step(*load()) == Error::Ok; }).get());
  BOOST_TEST(state.buffers().empty());
}

BOOST_AUTO_TEST_CASE(engine_runtimes_are_registered_while_delegates_load) {
  auto loading = in_thread([&] {
    bool ok = true;
    for (int k = 0; k < 100; ++k) {
      other.delegate.destroy();
      ok = ok && other.delegate.init() == Error::Ok;
    }
    return ok;
  });
  for (int k = 0; k < 100; ++k) {
    register_engine_runtime("other", nullptr);
    (void)engine_runtimes();
  }
  BOOST_TEST(loading.get());
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_last_error) {
  FailureLog failures("shared");
  (void)failures.report(invalid_argument("mine"));
  const auto theirs = [&] {
    const std::string before = take_last_error();
    (void)failures.report(invalid_argument("theirs"));
    return before + take_last_error();
  };
  BOOST_TEST(in_thread(theirs).get() == "shared: theirs");
  BOOST_TEST(take_last_error() == "shared: mine");
}

BOOST_AUTO_TEST_CASE(messages_of_all_threads_are_kept) {
  keep_messages();
  (void)take_messages();
  const auto write = [] {
    for (int k = 0; k < 10; ++k) {
      log_message(LogLevel::kInfo, "a message of a thread");
    }
  };
  auto first = in_thread(write);
  auto second = in_thread(write);
  std::size_t taken = 0;
  while (taken < 20) {
    taken += take_messages().size();
    std::this_thread::yield();
  }
  BOOST_TEST(taken == 20u);
}

BOOST_AUTO_TEST_SUITE_END()
