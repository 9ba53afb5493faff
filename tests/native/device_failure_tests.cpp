// Every call of CUDA, and of the engine, that fails: an error in words, outputs of the last shapes, nothing left at
// work with the caller's memory, nothing leaked, and a next call that is right.
#include <boost/test/unit_test.hpp>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/caller_stream.h"
#include "device_caller.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

constexpr int kOutOfMemory = 2;
constexpr int kIllegalAddress = 700;

// What ran before the call that fails, and where its memory lies. With a stream of its own, each call is on another.
struct Situation {
  Place inputs;
  Place outputs;
  bool named_stream;
  std::vector<int> rows_before;
  int profile;
  const char* level;
};

std::vector<Situation> situations() {
  std::vector<Situation> all;
  for (const auto& [inputs, outputs] : {std::pair{Place::kMalloc, Place::kMalloc},
                                        {Place::kDevice, Place::kMalloc},
                                        {Place::kMalloc, Place::kDevice},
                                        {Place::kDevice, Place::kDevice}}) {
    for (const bool named_stream : {false, true}) {
      for (const std::vector<int>& rows_before : {std::vector<int>{}, {4}}) {
        for (const int profile : {0, 1}) {
          for (const char* level : {"off", "phases"}) {
            all.push_back({inputs, outputs, named_stream, rows_before, profile, level});
          }
        }
      }
    }
  }
  return all;
}

// Makes one call fail by `arm`, and says whether something did.
template <typename Arm, typename Failed>
bool fails(const Situation& situation, const std::string& text, Arm&& arm, Failed&& has_failed) {
  FakeCuda cuda;
  fake_cuda_set_devices(2);
  DeviceCaller caller(situation.inputs, situation.outputs, 1);
  BOOST_TEST_REQUIRE((caller.load(situation.level) == Error::Ok));
  void* const stream_before = fake_cuda_stream_create(1);
  for (const int rows : situation.rows_before) {
    const OptimizationProfileGuard guard(1);
    const CudaStreamGuard stream_guard(stream_before);
    BOOST_TEST_REQUIRE((caller.run(rows) == Error::Ok));
  }
  const auto before = caller.seen().rows;
  std::optional<OwnStream> stream;
  if (situation.named_stream) {
    stream.emplace(fake_cuda_stream_create(1));
  }
  void* const handle = stream ? stream->handle : per_thread_stream();
  const OptimizationProfileGuard guard(situation.profile);
  arm();
  const Error error = caller.run(3);
  const bool failed = has_failed();
  fake_cuda_fail("", 0, 0, 0);
  fake_log().fail_at.clear();
  BOOST_TEST((fake_cuda_current_device() == 0 || (failed && error == Error::Ok)));  // but where restoring it failed
  fake_cuda_make_current(1);
  if (failed && error != Error::Ok) {
    const std::string told = take_last_error();
    BOOST_TEST(told.find("method 'forward', engine 0123456789ab: ") == 0u, told);
    BOOST_TEST(told.find(text) != std::string::npos, told);
    BOOST_TEST((caller.seen().rows == before));
    BOOST_TEST(fake_cuda_pending(handle) == 0);
  }
  fake_cuda_make_current(0);
  BOOST_TEST(fake_log().disturbed_at_work == 0);
  fake_cuda_run(stream_before);
  for (const int rows : {3, 4}) {
    BOOST_TEST((caller.run(rows) == Error::Ok));
    fake_cuda_run(handle);
    BOOST_TEST(caller.right());
  }
  return failed;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_failure)

BOOST_AUTO_TEST_CASE(a_call_of_cuda_that_fails_anywhere_leaves_nothing_at_work_and_a_delegate_that_works) {
  int injected = 0;
  for (const Situation& situation : situations()) {
    for (const char* function : {"cudaMalloc", "cudaGetDevice", "cudaSetDevice", "cudaPointerGetAttributes",
                                 "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaStreamWaitEvent",
                                 "cudaStreamIsCapturing", "cudaEventRecord", "cudaEventSynchronize"}) {
      for (const bool late : {false, true}) {
        if (late && function == std::string("cudaMalloc")) {
          continue;  // what it made would be nobody's
        }
        const int error = function == std::string("cudaMalloc") ? kOutOfMemory : kIllegalAddress;
        const std::string text = error == kOutOfMemory ? "out of memory (cudaErrorMemoryAllocation)"
                                                       : "an illegal memory access was encountered";
        for (int position = 0;; ++position) {
          BOOST_TEST_CONTEXT(function << " " << position << (late ? " late" : "") << ", in " << int(situation.inputs)
                                      << ", out " << int(situation.outputs) << ", named " << situation.named_stream
                                      << ", before " << situation.rows_before.size() << ", profile "
                                      << situation.profile << ", " << situation.level) {
            if (!fails(
                    situation, text, [&] { fake_cuda_fail(function, position, error, late); },
                    [] { return fake_cuda_failed() != 0; })) {
              break;
            }
          }
          ++injected;
        }
      }
    }
  }
  BOOST_TEST_MESSAGE(injected << " calls failed, each in turn");
  BOOST_TEST(injected >= 1000);
}

BOOST_AUTO_TEST_CASE(an_engine_that_fails_anywhere_leaves_nothing_at_work_and_a_delegate_that_works) {
  const struct {
    std::function<void()> throws;
    std::string text;
  } ways[] = {{nullptr, "fake failure at "},
              {[] { throw std::runtime_error("fake exception"); }, "fake exception"},
              {[] { throw std::bad_alloc(); }, "out of host memory"}};
  int injected = 0;
  for (const Situation& situation : situations()) {
    for (const char* step : {"context", "shape", "infer", "input", "output", "enqueue"}) {
      for (const auto& way : ways) {
        const auto fails_at = [&](int position) {
          const auto arm = [&] {
            fake_log().fail_at = step;
            fake_log().fail_after = position;
            fake_log().throw_there = way.throws;
          };
          return fails(situation, way.text, arm, [] { return fake_log().failed > 0; });
        };
        for (int position = 0; fails_at(position); ++position) {
          ++injected;
        }
      }
    }
  }
  BOOST_TEST_MESSAGE(injected << " steps failed, each in turn");
  BOOST_TEST(injected >= 1000);
}

BOOST_AUTO_TEST_CASE(an_output_that_does_not_take_its_shape_leaves_nothing_at_work) {
  FakeCuda cuda;
  for (const Place place : {Place::kMalloc, Place::kDevice}) {
    DeviceCaller caller(place, place);
    BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
    OwnStream stream;
    const auto before = caller.seen().rows;
    fake_log().infer_as = {{1, make_shape(std::vector<std::int64_t>{17, 2})}};
    BOOST_TEST((caller.run(3) == Error::InvalidArgument));
    BOOST_TEST(take_last_error().find("output 'y': (17, 2) does not fit the memory") != std::string::npos);
    BOOST_TEST(fake_log().enqueue == 0);
    BOOST_TEST(fake_cuda_pending(stream.handle) == 0);
    BOOST_TEST((caller.seen().rows == before));
    BOOST_TEST(caller.untouched());
    fake_log().infer_as.clear();
    BOOST_TEST((caller.run(4) == Error::Ok));
    fake_cuda_run(stream.handle);
    BOOST_TEST(caller.right());
  }
}

BOOST_AUTO_TEST_CASE(a_call_that_no_profile_takes_reaches_cuda_with_nothing) {
  FakeCuda cuda;
  DeviceCaller caller(Place::kMalloc, Place::kMalloc);
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  FakeCuda::take_log();
  BOOST_TEST((caller.run(5) == Error::InvalidArgument));
  BOOST_TEST(FakeCuda::take_log() == (std::vector<std::string>{"GetDevice"}), boost::test_tools::per_element());
  BOOST_TEST(caller.untouched());
}

BOOST_AUTO_TEST_CASE(memory_that_the_device_does_not_have_is_named_with_its_size) {
  FakeCuda cuda;
  DeviceCaller caller(Place::kMalloc, Place::kMalloc);
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  fake_cuda_set_free_memory(600);
  BOOST_TEST((caller.run(3) == Error::MemoryAllocationFailed));
  BOOST_TEST(take_last_error() ==
             "method 'forward', engine 0123456789ab: allocating 256 bytes of device memory for 'x' failed: out of "
             "memory (cudaErrorMemoryAllocation)");
  BOOST_TEST(caller.untouched());
  fake_cuda_set_free_memory(1 << 20);
  BOOST_TEST((caller.run(3) == Error::Ok));
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_device_that_does_not_exist_is_named_at_load) {
  FakeCuda cuda(2);
  DeviceCaller caller(Place::kMalloc, Place::kMalloc, 2);
  BOOST_TEST((caller.load() == Error::NotSupported));
  BOOST_TEST(take_last_error() ==
             "method 'forward': the engine is for another CUDA device: got 2, allowed 0..1; look at "
             "CUDA_VISIBLE_DEVICES, or export with another device");
  BOOST_TEST(fake_log().engines == fake_log().engines_freed);
}

BOOST_AUTO_TEST_CASE(a_load_that_fails_in_cuda_leaves_nothing) {
  FakeCuda cuda;
  for (const char* function : {"cudaGetDeviceCount", "cudaEventCreateWithFlags", "cudaSetDevice"}) {
    for (int position = 0;; ++position) {
      DeviceCaller caller(Place::kDevice, Place::kDevice, 1);
      fake_cuda_fail(function, position, kIllegalAddress, 0);
      const Error error = caller.load();
      if (!fake_cuda_failed()) {
        break;
      }
      if (error == Error::Ok) {
        continue;  // only the caller's device was not restored
      }
      BOOST_TEST((error == Error::Internal));
      BOOST_TEST(take_last_error().find("an illegal memory access was encountered (cudaErrorIllegalAddress)") !=
                 std::string::npos);
      BOOST_TEST(fake_log().engines == fake_log().engines_freed);
      BOOST_TEST((caller.load() == Error::Ok));
      BOOST_TEST((caller.run(3) == Error::Ok));
      BOOST_TEST(caller.right());
    }
  }
}

BOOST_AUTO_TEST_CASE(an_end_that_fails_in_cuda_leaves_nothing_and_no_error_to_the_caller) {
  int injected = 0;
  for (const char* function : {"cudaFree", "cudaEventDestroy", "cudaEventSynchronize", "cudaGraphExecDestroy",
                               "cudaStreamDestroy", "cudaSetDevice", "cudaGetDevice"}) {
    for (int position = 0;; ++position) {
      FakeCuda cuda;
      DeviceCaller caller(Place::kDevice, Place::kDevice, 1);
      BOOST_TEST_REQUIRE((caller.load("phases", true) == Error::Ok));
      for (int call = 0; call < 3; ++call) {
        BOOST_TEST((caller.run(3) == Error::Ok));
      }
      {
        OwnStream stream(fake_cuda_stream_create(1));
        BOOST_TEST((caller.run(3) == Error::Ok));
      }
      fake_cuda_fail(function, position, kIllegalAddress, 1);
      caller.delegate.destroy();
      BOOST_TEST(fake_cuda_current_device() == 0);
      BOOST_TEST(caller.right());
      if (!fake_cuda_failed()) {
        break;
      }
      ++injected;
    }
  }
  BOOST_TEST(injected >= 7);
}

BOOST_AUTO_TEST_SUITE_END()
