// Whether a call returns before its work is done, on which stream it works, and what orders it behind earlier calls.
#include <dlfcn.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "device/caller_stream.h"
#include "device_caller.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"
#include "guard_of.h"
#include "process/thread_request.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;
using Lines = std::vector<std::string>;

namespace {

class Tracer final : public executorch::etdump::ETDumpGen {
 public:
  Tracer() { create_event_block("Execute"); }
  ~Tracer() override { std::free(get_etdump_data().buf); }
};

bool contains(const Lines& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

// Whether a call of 3 rows waits for its work, which happens only when somebody does.
bool waits(DeviceCaller& caller, void* stream, Tracer& tracer) {
  BOOST_TEST((caller.run(3, &tracer) == Error::Ok));
  const bool has_waited = fake_cuda_pending(stream) == 0;
  BOOST_TEST(caller.right() == has_waited);
  BOOST_TEST(caller.untouched() == !has_waited);
  fake_cuda_run(stream);
  BOOST_TEST(caller.right());
  return has_waited;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_stream)

BOOST_AUTO_TEST_CASE(a_call_returns_early_on_a_named_stream_with_device_memory_alone_whatever_the_request_and_level) {
  constexpr Place kPlaces[] = {Place::kMalloc, Place::kPinned, Place::kDevice, Place::kManaged};
  FakeCuda cuda;
  for (const Place in : kPlaces) {
    for (const Place out : kPlaces) {
      for (const char* level : {"off", "delegate", "phases", "layers"}) {
        DeviceCaller caller(in, out);
        Tracer tracer;
        BOOST_TEST_REQUIRE((caller.load(level) == Error::Ok));
        for (const auto request : {Request{}, Request::pinned(1), Request::automatic()}) {
          BOOST_TEST_CONTEXT("in " << int(in) << ", out " << int(out) << ", " << level << ", " << to_string(request)) {
            const auto guard = guard_of(request);
            {
              OwnStream stream;
              const bool on_device = in >= Place::kDevice && out >= Place::kDevice;
              BOOST_TEST(waits(caller, stream.handle, tracer) == !on_device);
              BOOST_TEST(waits(caller, stream.handle, tracer) == !on_device);
            }
            BOOST_TEST(waits(caller, per_thread_stream(), tracer));
          }
        }
        BOOST_TEST(fake_log().disturbed_at_work == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cudas_default_stream_can_be_named) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  const CudaStreamGuard guard(nullptr);
  BOOST_TEST((caller.run(3) == Error::Ok));
  BOOST_TEST(caller.untouched());
  fake_cuda_run(nullptr);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_handle_that_stands_for_another_stream_is_ordered_as_any_other) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  void* before = nullptr;
  {
    OwnStream stream;
    before = stream.handle;
    BOOST_TEST((caller.run(4) == Error::Ok));
  }
  FakeCuda::take_log();
  OwnStream stream(fake_cuda_stream_create_again(before));
  BOOST_TEST((caller.run_again(4) == Error::Ok));
  BOOST_TEST(contains(FakeCuda::take_log(), "StreamWaitEvent s2 e1"));
  fake_cuda_run(stream.handle);
}

BOOST_AUTO_TEST_CASE(the_own_streams_of_two_threads_are_ordered_although_they_have_one_handle) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  const CudaStreamGuard guard(per_thread_stream());
  BOOST_TEST((caller.run(4) == Error::Ok));
  FakeCuda::take_log();
  std::thread([&] { BOOST_TEST((caller.run_again(4) == Error::Ok)); }).join();
  BOOST_TEST(contains(FakeCuda::take_log(), "StreamWaitEvent per-thread e1"));
  BOOST_TEST(fake_cuda_pending(per_thread_stream()) == 0);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(calls_on_one_stream_are_queued_one_behind_the_other) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  BOOST_TEST((caller.run(4) == Error::Ok));
  const int one = fake_cuda_pending(stream.handle);
  BOOST_TEST((caller.run_again(2) == Error::Ok));
  BOOST_TEST(fake_cuda_pending(stream.handle) == 2 * one);
  const Lines log = FakeCuda::take_log();
  BOOST_TEST(!contains(log, "StreamWaitEvent"));
  BOOST_TEST(!contains(log, "Synchronize"));
  fake_cuda_run(stream.handle);
}

BOOST_AUTO_TEST_CASE(another_stream_is_ordered_by_the_event_and_the_one_before_is_not_touched) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  {
    OwnStream first;
    BOOST_TEST((caller.run(4) == Error::Ok));
  }  // destroyed with the work on its way
  OwnStream second;
  FakeCuda::take_log();
  BOOST_TEST((caller.run_again(4) == Error::Ok));
  const Lines log = FakeCuda::take_log();
  BOOST_TEST(std::count(log.begin(), log.end(), "StreamWaitEvent s2 e1") == 1);
  BOOST_TEST(!contains(log, "Synchronize"));
  BOOST_TEST(!contains(log, "s1"));
  BOOST_TEST(caller.untouched());
  fake_cuda_run(second.handle);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_call_without_a_named_stream_is_ordered_behind_one_with) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  {
    OwnStream first;
    BOOST_TEST((caller.run(4) == Error::Ok));
  }
  FakeCuda::take_log();
  BOOST_TEST((caller.run_again(4) == Error::Ok));
  const Lines log = FakeCuda::take_log();
  BOOST_TEST(contains(log, "StreamWaitEvent per-thread e1"));
  BOOST_TEST(!contains(log, "s1"));
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_work_on_its_way_also_when_its_stream_is_gone) {
  FakeCuda cuda;
  for (const char* level : {"off", "layers"}) {
    DeviceCaller caller;
    Tracer tracer;
    BOOST_TEST_REQUIRE((caller.load(level) == Error::Ok));
    {
      OwnStream stream;
      BOOST_TEST((caller.run(4, &tracer) == Error::Ok));
    }
    BOOST_TEST(caller.untouched());
    FakeCuda::take_log();
    caller.delegate.destroy();
    BOOST_TEST(caller.right());
    BOOST_TEST(fake_log().disturbed_at_work == 0);
    const Lines log = FakeCuda::take_log();
    BOOST_TEST(contains(log, "EventSynchronize e"));
    BOOST_TEST(!contains(log, " s"));
  }
}

BOOST_AUTO_TEST_CASE(contexts_wait_for_work_before_they_end_and_before_others_are_made) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  BOOST_TEST((caller.run(4) == Error::Ok));
  FakeCuda::take_log();
  {
    const OptimizationProfileGuard guard(1);
    BOOST_TEST((caller.run_again(4) == Error::Ok));
  }
  BOOST_TEST(contains(FakeCuda::take_log(), "EventSynchronize e1"));
  BOOST_TEST((set_profiling("layers") == Error::Ok));
  BOOST_TEST((caller.run_again(4) == Error::Ok));
  clear_profiling();
  BOOST_TEST(contains(FakeCuda::take_log(), "EventSynchronize e1"));
  fake_cuda_run(stream.handle);
  BOOST_TEST(caller.right());
  BOOST_TEST(fake_log().disturbed_at_work == 0);
}

BOOST_AUTO_TEST_CASE(a_stream_whose_capture_has_failed_is_refused_before_anything_is_touched) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  fake_cuda_set_capturing(stream.handle, 2);
  FakeCuda::take_log();
  const auto before = caller.seen();
  BOOST_TEST((caller.run_again(3) == Error::InvalidArgument));
  BOOST_TEST(take_last_error() ==
             "method 'forward', engine 0123456789ab: the caller's stream is being captured into a CUDA graph, which "
             "has failed: got a call of an engine, allowed none; end the capture before the call");
  BOOST_TEST(FakeCuda::take_log() == (Lines{"GetDevice", "StreamIsCapturing s1"}), boost::test_tools::per_element());
  BOOST_TEST(fake_log().contexts == 0);
  BOOST_TEST((caller.seen() == before));
  fake_cuda_set_capturing(stream.handle, 0);
  BOOST_TEST((caller.run(3) == Error::Ok));
  fake_cuda_run(stream.handle);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_stream_that_was_destroyed_is_refused) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  fake_cuda_stream_destroy(stream.handle);
  BOOST_TEST((caller.run(3) == Error::Internal));
  BOOST_TEST(take_last_error() ==
             "method 'forward', engine 0123456789ab: using the stream that the caller named failed: invalid resource "
             "handle (cudaErrorInvalidResourceHandle)");
  BOOST_TEST(fake_log().enqueue == 0);
  OwnStream other;
  BOOST_TEST((caller.run(3) == Error::Ok));
  fake_cuda_run(other.handle);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(stream_guards_nest_restore_and_belong_to_their_thread) {
  int streams[2];
  BOOST_TEST(!caller_stream().has_value());
  {
    const CudaStreamGuard outer(&streams[0]);
    try {
      const CudaStreamGuard inner(&streams[1]);
      BOOST_TEST(*caller_stream() == &streams[1]);
      const CudaStreamGuard null(nullptr);
      BOOST_TEST(*caller_stream() == nullptr);
      throw 1;
    } catch (int) {
    }
    BOOST_TEST(*caller_stream() == &streams[0]);
    bool seen_elsewhere = true;
    std::thread([&] { seen_elsewhere = caller_stream().has_value(); }).join();
    BOOST_TEST(!seen_elsewhere);
  }
  BOOST_TEST(!caller_stream().has_value());
}

BOOST_AUTO_TEST_CASE(executorchs_guard_counts_where_its_library_is_in_the_process_and_ours_is_not_used) {
  FakeCuda cuda;
  DeviceCaller caller;
  void* library = dlopen(ETRT_FAKE_CALLER_STREAM, RTLD_NOW | RTLD_GLOBAL);
  BOOST_TEST_REQUIRE(library != nullptr);
  const auto set = reinterpret_cast<void (*)(void*)>(dlsym(library, "fake_set_caller_stream"));
  const auto clear = reinterpret_cast<void (*)()>(dlsym(library, "fake_clear_caller_stream"));
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));  // looks for it
  void* theirs = fake_cuda_stream_create(0);
  set(theirs);
  BOOST_TEST((caller.run(3) == Error::Ok));
  BOOST_TEST(caller.untouched());
  fake_cuda_run(theirs);
  BOOST_TEST(caller.right());
  {
    OwnStream ours;
    BOOST_TEST((caller.run(3) == Error::Ok));
    BOOST_TEST(fake_cuda_pending(theirs) == 0);
    fake_cuda_run(ours.handle);
    BOOST_TEST(caller.right());
  }
  clear();
  BOOST_TEST((caller.run(3) == Error::Ok));
  BOOST_TEST(caller.right());
  fake_cuda_stream_destroy(theirs);
}

// On an H200, TensorRT 8.6 failed to launch where nothing before had needed the device.
BOOST_AUTO_TEST_CASE(the_first_call_of_a_thread_has_the_devices_context) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  BOOST_TEST((caller.run(2) == Error::Ok));
  Error error = Error::Internal;
  const FakeEngineLog log = fake_log();
  std::thread([&] {
    fake_log() = log;
    error = caller.run_again(2);
  }).join();
  BOOST_TEST((error == Error::Ok));
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_SUITE_END()
