// Host memory that runs out at every allocation of a delegate, once or from there on.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <new>
#include <thread>

#include "at_every_allocation.h"
#include "executorch_tensorrt/cuda_stream_guard.h"
#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"
#include "process/thread_request.h"
#include "three_by_three.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

// The call with 3 rows that three.prepare() has made ready, without memory.
bool fails(ThreeByThree& three, int passing, Which which) {
  const ThreeByThree::Seen before = three.seen();
  Error error = Error::Ok;
  int failed = 0;
  {
    const FailingAllocations failing(passing, which);
    error = three.execute();
    failed = failing.failed();
  }
  if (failed == 0) {
    BOOST_TEST((error == Error::Ok));
    return false;
  }
  BOOST_TEST((error == Error::MemoryAllocationFailed));
  const std::string text = take_last_error();  // empty where there was no memory for words
  BOOST_TEST((text.empty() || text == "method 'forward', engine 0123456789ab: out of host memory"), text);
  BOOST_TEST((three.seen().rows == before.rows || three.right()));  // the last step to fail is the trace's
  for (const int rows : {3, 4}) {
    BOOST_TEST((three.run(rows) == Error::Ok));
    BOOST_TEST(three.right());
  }
  return true;
}

// A folder for traces, gone with it.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("etrt_allocation_tests_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::filesystem::path path;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(guards_take_memory_when_a_thread_first_makes_one_and_none_later) {
  const EngineState state;
  const auto nested = [&](auto&& inside) {
    const OptimizationProfileGuard profile(1);
    const OptimizationProfileGuard again(1);
    const EngineStateGuard shared(state);
    const CudaStreamGuard stream(nullptr);
    inside();
  };
  nested([] {});
  const FailingAllocations failing(0, Which::kAllAfter);
  nested([] {});
  BOOST_TEST(failing.failed() == 0);
}

BOOST_AUTO_TEST_CASE(a_guard_without_memory_asks_for_nothing) {
  int failures = 0;
  for (int passing = 0; passing < 5; ++passing) {
    std::thread([&] {
      try {
        const FailingAllocations failing(passing, Which::kOne);
        const OptimizationProfileGuard guard(1);
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      BOOST_TEST((current_request() == Request()));
      const OptimizationProfileGuard guard(1);
      BOOST_TEST((current_request() == Request::pinned(1)));
    }).join();
  }
  BOOST_TEST(failures >= 1);
}

BOOST_AUTO_TEST_CASE(a_delegate_that_finds_no_memory_does_not_load_and_leaves_nothing) {
  at_every_allocation(50, [](int passing, Which which) {
    ThreeByThree three;
    Error error = Error::Ok;
    int failed = 0;
    {
      const FailingAllocations failing(passing, which);
      error = three.delegate.init();
      failed = failing.failed();
    }
    BOOST_TEST((error == (failed > 0 ? Error::MemoryAllocationFailed : Error::Ok)));
    (void)take_last_error();
    three.delegate.destroy();
    BOOST_TEST(ThreeByThree::nothing_is_left());
    BOOST_TEST((three.delegate.init() == Error::Ok));
    BOOST_TEST((three.run(2) == Error::Ok));
    return failed > 0;
  });
}

BOOST_AUTO_TEST_CASE(a_first_call_that_finds_no_memory_leaves_the_outputs_and_a_delegate_that_works) {
  at_every_allocation(8, [](int passing, Which which) {
    ThreeByThree three;
    BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
    three.prepare(3);
    return fails(three, passing, which);
  });
}

BOOST_AUTO_TEST_CASE(a_call_with_a_new_shape_that_finds_no_memory_leaves_the_last_outputs) {
  at_every_allocation(1, [](int passing, Which which) {
    ThreeByThree three;
    BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
    BOOST_TEST_REQUIRE((three.run(2) == Error::Ok));
    three.prepare(3);
    return fails(three, passing, which);
  });
}

BOOST_AUTO_TEST_CASE(a_steady_call_allocates_nothing) {
  ThreeByThree three;
  BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
  BOOST_TEST_REQUIRE((three.run(3) == Error::Ok));
  three.prepare(3);
  BOOST_TEST(!fails(three, 0, Which::kAllAfter));
  BOOST_TEST(three.right());
}

BOOST_AUTO_TEST_CASE(profiling_that_finds_no_memory_is_taken_over_by_the_next_call) {
  const Folder folder;
  at_every_allocation(20, [&](int passing, Which which) {
    std::size_t before = folder.files();
    bool failed = false;
    {
      ThreeByThree three;
      BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
      BOOST_TEST_REQUIRE((three.run(2) == Error::Ok));
      BOOST_TEST_REQUIRE((set_profiling("layers", "perfetto", folder.path.string()) == Error::Ok));
      three.prepare(3);
      failed = fails(three, passing, which);
    }
    clear_profiling();
    BOOST_TEST(folder.files() == before + 1);
    return failed;
  });
}

BOOST_AUTO_TEST_CASE(a_trace_that_finds_no_memory_at_the_end_is_lost_alone) {
  const Folder folder;
  at_every_allocation(20, [&](int passing, Which which) {
    int failed = 0;
    {
      ThreeByThree three;
      BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
      BOOST_TEST_REQUIRE((set_profiling("layers", "trex", folder.path.string()) == Error::Ok));
      BOOST_TEST_REQUIRE((three.run(2) == Error::Ok));
      clear_profiling();
      const FailingAllocations failing(passing, which);
      three.delegate.destroy();
      failed = failing.failed();
    }
    BOOST_TEST(ThreeByThree::nothing_is_left());
    return failed > 0;
  });
  for (const auto& file : std::filesystem::directory_iterator(folder.path)) {
    BOOST_TEST((file.path().extension() == ".json"), file.path());  // whole, or not there
  }
}

BOOST_AUTO_TEST_SUITE_END()
