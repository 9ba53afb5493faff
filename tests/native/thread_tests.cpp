// Delegates, guards, states and process-wide settings in several threads. Their worth is under ThreadSanitizer.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <thread>

#include "device/caller_stream.h"
#include "device_caller.h"
#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"
#include "own_buffers.h"
#include "process/thread_request.h"
#include "three_by_three.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

constexpr int kCalls = 200;

// Runs `work(k)` in one thread for each k, and says whether all returned true.
bool in_threads(int count, const std::function<bool(int)>& work) {
  std::vector<char> fine(static_cast<std::size_t>(count), 0);
  std::vector<std::thread> threads;
  for (int k = 0; k < count; ++k) {
    threads.emplace_back([&, k] { fine[static_cast<std::size_t>(k)] = work(k); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return std::all_of(fine.begin(), fine.end(), [](char ok) { return ok != 0; });
}

// Calls of 3 and 4 rows, which both profiles take.
bool calls_are_right(ThreeByThree& caller, Delegate& delegate, std::size_t profile) {
  for (int call = 0; call < kCalls; ++call) {
    SelectionCollector collector;
    caller.prepare(3 + call % 2);
    if (delegate.execute(caller.args) != Error::Ok || !caller.right() || collector.take().at(0).profile != profile) {
      return false;
    }
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads)

BOOST_AUTO_TEST_CASE(delegates_run_side_by_side_each_with_its_threads_guard) {
  BOOST_TEST(in_threads(4, [](int k) {
    ThreeByThree three;
    const OptimizationProfileGuard guard(k % 2);
    return three.delegate.init() == Error::Ok &&
           calls_are_right(three, three.delegate, static_cast<std::size_t>(k % 2));
  }));
}

BOOST_AUTO_TEST_CASE(one_delegate_serves_two_threads_in_turn) {
  ThreeByThree owner;
  BOOST_TEST_REQUIRE((owner.delegate.init() == Error::Ok));
  BOOST_TEST(in_threads(2, [&](int k) {
    ThreeByThree caller;
    const OptimizationProfileGuard guard(k);
    return calls_are_right(caller, owner.delegate, static_cast<std::size_t>(k));
  }));
}

BOOST_AUTO_TEST_CASE(a_guard_is_not_seen_in_another_thread) {
  const OptimizationProfileGuard guard(1);
  BOOST_TEST(in_threads(1, [](int) {
    ThreeByThree three;
    return three.delegate.init() == Error::Ok && calls_are_right(three, three.delegate, 0);
  }));
}

BOOST_AUTO_TEST_CASE(a_delegate_ends_while_another_runs) {
  BOOST_TEST(in_threads(2, [](int k) {
    for (int load = 0; load < (k == 0 ? 1 : 50); ++load) {
      ThreeByThree three;
      if (three.delegate.init() != Error::Ok || (k == 0 && !calls_are_right(three, three.delegate, 0))) {
        return false;
      }
    }
    return true;
  }));
}

BOOST_AUTO_TEST_CASE(an_error_is_told_to_its_own_thread) {
  BOOST_TEST(in_threads(2, [](int k) {
    ThreeByThree three;
    if (three.delegate.init() != Error::Ok) {
      return false;
    }
    for (int call = 0; call < kCalls; ++call) {
      const Error error = three.run(k == 0 ? 3 : 5);
      const std::string text = take_last_error();
      if ((error == Error::Ok) != (k == 0) || text.empty() != (k == 0)) {
        return false;
      }
    }
    return true;
  }));
}

BOOST_AUTO_TEST_CASE(profiling_changes_while_calls_run) {
  BOOST_TEST(in_threads(3, [](int k) {
    ThreeByThree three;
    if (k > 0) {
      return three.delegate.init() == Error::Ok && calls_are_right(three, three.delegate, 0);
    }
    for (int change = 0; change < kCalls; ++change) {
      if (set_profiling(change % 2 ? "layers" : "phases") != Error::Ok || !profiling_state().is_set) {
        return false;
      }
    }
    return true;
  }));
  clear_profiling();
}

BOOST_AUTO_TEST_CASE(delegates_share_a_state_in_two_threads_while_a_third_looks_at_it) {
  EngineState state;
  BOOST_TEST(in_threads(3, [&](int k) {
    if (k == 2) {
      for (int look = 0; look < kCalls; ++look) {
        float both[2] = {0, 0};
        const bool is_there = !state.buffers().empty();
        if (is_there && (state.read("kv", both, sizeof(both)) != Error::Ok || both[0] != both[1])) {
          return false;
        }
      }
      return true;
    }
    const auto delegate = load(state);
    for (int call = 0; call < kCalls; ++call) {
      if (step(*delegate) != Error::Ok) {
        return false;
      }
    }
    return true;
  }));
  float both[2] = {0, 0};
  BOOST_TEST((state.read("kv", both, sizeof(both)) == Error::Ok));
  BOOST_TEST(both[0] == 2.0f * kCalls);
}

BOOST_AUTO_TEST_CASE(delegates_on_one_device_run_side_by_side_each_on_its_threads_stream) {
  const FakeCuda cuda;
  BOOST_TEST(in_threads(4, [](int k) {
    DeviceCaller caller(k % 2 ? Place::kDevice : Place::kMalloc, Place::kDevice);
    void* const stream = k < 2 ? fake_cuda_stream_create(0) : per_thread_stream();
    const CudaStreamGuard guard(stream);
    bool right = caller.load() == Error::Ok;
    for (int call = 0; call < kCalls; ++call) {
      right = right && caller.run(3 + call % 2) == Error::Ok;
      fake_cuda_run(stream);
      right = right && caller.right();
    }
    return right;
  }));
}

BOOST_AUTO_TEST_CASE(one_delegate_on_a_device_serves_two_threads_in_turn) {
  const FakeCuda cuda;
  DeviceCaller owner;
  BOOST_TEST_REQUIRE((owner.load() == Error::Ok));
  BOOST_TEST(in_threads(2, [&](int) {
    const CudaStreamGuard guard(per_thread_stream());
    DeviceCaller caller;
    for (int call = 0; call < kCalls; ++call) {
      if (caller.run_on(owner.delegate, 3 + call % 2) != Error::Ok) {
        return false;
      }
      fake_cuda_run(per_thread_stream());
      if (!caller.right()) {
        return false;
      }
    }
    return true;
  }));
}

BOOST_AUTO_TEST_SUITE_END()
