// Calls that are replayed as CUDA graphs: from the third of a kind on, with the same outputs, and never with a graph
// that is not of this call.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device_caller.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

// One call, and whether a graph was launched for it.
bool replays(DeviceCaller& caller, int rows, int profile = 1) {
  const OptimizationProfileGuard guard(profile);
  FakeCuda::take_log();
  const int enqueued = fake_log().enqueue;
  BOOST_TEST((caller.run(rows) == Error::Ok));
  BOOST_TEST(caller.right());
  for (const std::string& line : FakeCuda::take_log()) {
    if (line == "GraphLaunch per-thread") {
      BOOST_TEST(fake_log().enqueue == enqueued);
      return true;
    }
  }
  return false;
}

void record(DeviceCaller& caller, int rows, int profile = 1) {
  BOOST_TEST(!replays(caller, rows, profile));
  BOOST_TEST(!replays(caller, rows, profile));
}

// Moves an input or output to other memory, as long as it lives.
class Moved {
 public:
  Moved(DeviceCaller& caller, std::size_t argument)
      : caller_(caller), argument_(argument), memory_(new Block<float>(32, Place::kDevice)) {
    swap();
  }
  ~Moved() { swap(); }

 private:
  void swap() {
    std::swap(caller_.memory[argument_], memory_);
    caller_.tensors[argument_] = executorch::extension::from_blob(caller_.memory[argument_]->data(), {16, 2});
  }

  DeviceCaller& caller_;
  std::size_t argument_;
  std::unique_ptr<Block<float>> memory_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(device_graph)

BOOST_AUTO_TEST_CASE(the_third_call_of_a_kind_is_replayed_wherever_its_memory_lies) {
  FakeCuda cuda;
  for (const Place place : {Place::kMalloc, Place::kPinned, Place::kDevice, Place::kManaged}) {
    DeviceCaller caller(place, place);
    BOOST_TEST_REQUIRE((caller.load("phases", true) == Error::Ok));
    record(caller, 4);
    const FakeEngineLog before = fake_log();
    for (int call = 0; call < 3; ++call) {
      BOOST_TEST(replays(caller, 4));
    }
    BOOST_TEST(fake_log().set_input_shape == before.set_input_shape);
    BOOST_TEST(fake_log().infer == before.infer);
    BOOST_TEST(fake_log().set_input_address == before.set_input_address);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_replayed_unless_it_was_asked_for) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  for (int call = 0; call < 4; ++call) {
    BOOST_TEST(!replays(caller, 4));
  }
}

BOOST_AUTO_TEST_CASE(a_replay_on_a_named_stream_returns_early) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
  record(caller, 4, 0);
  OwnStream stream;
  BOOST_TEST((caller.run(4) == Error::Ok));
  BOOST_TEST(caller.untouched());
  fake_cuda_run(stream.handle);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_call_of_another_shape_profile_or_address_is_not_replayed_and_the_first_still_is) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
  record(caller, 4);
  BOOST_TEST(!replays(caller, 3));
  BOOST_TEST(replays(caller, 4));
  BOOST_TEST(!replays(caller, 4, 0));
  BOOST_TEST(replays(caller, 4));
  for (std::size_t argument = 0; argument < 4; ++argument) {
    {
      const Moved moved(caller, argument);
      BOOST_TEST(!replays(caller, 4));
      BOOST_TEST(!replays(caller, 4));
      BOOST_TEST(replays(caller, 4));
    }
    BOOST_TEST(replays(caller, 4));
  }
}

BOOST_AUTO_TEST_CASE(addresses_that_are_always_new_are_served_by_memory_that_stays) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
  std::vector<std::unique_ptr<Moved>> moved;
  std::vector<bool> replayed;
  for (int call = 0; call < 9; ++call) {
    for (std::size_t argument : {0u, 2u}) {
      moved.push_back(std::make_unique<Moved>(caller, argument));
    }
    replayed.push_back(replays(caller, 3));
  }
  // Four calls with new addresses; then one, and another that is captured, with those of the memory that stays.
  const std::vector<bool> expected = {false, false, false, false, false, false, true, true, true};
  BOOST_TEST(replayed == expected, boost::test_tools::per_element());
  while (!moved.empty()) {
    moved.pop_back();
  }
}

BOOST_AUTO_TEST_CASE(no_more_graphs_are_kept_than_the_limit) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
  const int objects = fake_cuda_objects();
  for (int rows = 1; rows <= 4; ++rows) {
    record(caller, rows, 0);
  }
  for (int rows = 3; rows <= 16; ++rows) {
    record(caller, rows, 1);
  }
  BOOST_TEST(fake_cuda_objects() == objects + 16);
  BOOST_TEST(replays(caller, 16));
  BOOST_TEST(!replays(caller, 1, 0));
}

BOOST_AUTO_TEST_CASE(level_layers_runs_without_graphs) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
  record(caller, 4);
  BOOST_TEST((set_profiling("layers") == Error::Ok));
  BOOST_TEST(!replays(caller, 4));
  clear_profiling();
  record(caller, 4);
  BOOST_TEST(replays(caller, 4));
  BOOST_TEST(fake_log().disturbed_at_work == 0);
}

BOOST_AUTO_TEST_CASE(a_capture_that_fails_is_told_once_and_calls_go_on_without) {
  for (const char* function : {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiateWithFlags"}) {
    for (const Place place : {Place::kMalloc, Place::kDevice}) {
      FakeCuda cuda;
      DeviceCaller caller(place, place);
      BOOST_TEST_REQUIRE((caller.load("phases", true) == Error::Ok));
      BOOST_TEST(!replays(caller, 4));
      fake_cuda_fail(function, 0, 900, 0);
      for (int call = 0; call < 4; ++call) {
        BOOST_TEST(!replays(caller, 4));
      }
      BOOST_TEST(fake_cuda_failed());
      BOOST_TEST(fake_log().disturbed_at_work == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_engine_that_fails_while_it_is_captured_goes_on_without) {
  for (const auto& throws : std::vector<std::function<void()>>{
           nullptr, [] { throw std::runtime_error("fake exception"); }, [] { throw std::bad_alloc(); }}) {
    FakeCuda cuda;
    DeviceCaller caller;
    BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
    BOOST_TEST(!replays(caller, 4));
    fake_log().fail_at = "enqueue";
    fake_log().fail_after = 1;
    fake_log().throw_there = throws;
    BOOST_TEST(!replays(caller, 4));
    BOOST_TEST(fake_log().failed == 1);
    fake_log().fail_at.clear();
    for (int call = 0; call < 3; ++call) {
      BOOST_TEST(!replays(caller, 4));
    }
    BOOST_TEST(fake_log().disturbed_at_work == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_launch_that_fails_is_an_error_and_leaves_nothing_at_work) {
  FakeCuda cuda;
  for (const bool late : {false, true}) {
    DeviceCaller caller;
    BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
    record(caller, 4, 0);
    fake_cuda_fail("cudaGraphLaunch", 0, 700, late);
    OwnStream stream;
    BOOST_TEST((caller.run(4) == Error::Internal));
    BOOST_TEST(take_last_error() ==
               "method 'forward', engine 0123456789ab: launching a CUDA graph failed: an illegal memory access was "
               "encountered (cudaErrorIllegalAddress)");
    BOOST_TEST(fake_cuda_pending(stream.handle) == 0);
    BOOST_TEST((caller.run(4) == Error::Ok));
    fake_cuda_run(stream.handle);
    BOOST_TEST(caller.right());
  }
}

BOOST_AUTO_TEST_CASE(graphs_end_with_the_context_that_they_were_made_of) {
  for (const auto& throws : std::vector<std::function<void()>>{nullptr, [] { throw std::bad_alloc(); }}) {
    FakeCuda cuda;
    DeviceCaller caller;
    BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
    record(caller, 4);
    fake_log().fail_at = "enqueue";
    fake_log().throw_there = throws;
    {
      const OptimizationProfileGuard guard(1);
      BOOST_TEST((caller.run(5) != Error::Ok));
    }
    fake_log().fail_at.clear();
    BOOST_TEST(!replays(caller, 4));
    BOOST_TEST(fake_log().disturbed_at_work == 0);
  }
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_a_graph_at_work) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("off", true) == Error::Ok));
  record(caller, 4, 0);
  {
    OwnStream stream;
    BOOST_TEST((caller.run(4) == Error::Ok));
    BOOST_TEST(caller.untouched());
  }
  caller.delegate.destroy();
  BOOST_TEST(caller.right());
  BOOST_TEST(fake_log().disturbed_at_work == 0);
}

BOOST_AUTO_TEST_SUITE_END()
