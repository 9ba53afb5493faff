// What an engine on a device makes of a call, in CUDA's own calls and their order.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "delegate_metadata.h"
#include "device_caller.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;
using Lines = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(device_order)

BOOST_AUTO_TEST_CASE(loading_makes_one_event) {
  FakeCuda cuda;
  DeviceCaller first;  // of the process, it looks for CUDA
  BOOST_TEST_REQUIRE((first.load() == Error::Ok));
  DeviceCaller caller;
  FakeCuda::take_log();
  BOOST_TEST((caller.load() == Error::Ok));
  BOOST_TEST(FakeCuda::take_log() == (Lines{"GetDeviceCount", "GetDevice", "EventCreateWithFlags 2"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_call_on_device_memory_and_a_callers_stream_queues_the_work_and_an_event) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  const Lines call = {"GetDevice",
                      "StreamIsCapturing s1",
                      "PointerGetAttributes",
                      "PointerGetAttributes",
                      "PointerGetAttributes",
                      "PointerGetAttributes",
                      "work s1",
                      "EventRecord e1 s1"};
  for (int k = 0; k < 3; ++k) {
    FakeCuda::take_log();
    BOOST_TEST((caller.run(2) == Error::Ok));
    BOOST_TEST(FakeCuda::take_log() == call, boost::test_tools::per_element());
    fake_cuda_run(stream.handle);
    BOOST_TEST(caller.right());
  }
}

BOOST_AUTO_TEST_CASE(a_call_on_host_memory_stages_it_and_waits) {
  FakeCuda cuda;
  DeviceCaller caller(Place::kMalloc, Place::kMalloc);
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  FakeCuda::take_log();
  BOOST_TEST((caller.run(2) == Error::Ok));
  BOOST_TEST(FakeCuda::take_log() == (Lines{"GetDevice",
                                            "PointerGetAttributes",
                                            "Malloc 256",
                                            "GetDevice",
                                            "MemcpyAsync H2D 16 per-thread",
                                            "PointerGetAttributes",
                                            "Malloc 256",
                                            "GetDevice",
                                            "MemcpyAsync H2D 16 per-thread",
                                            "PointerGetAttributes",
                                            "Malloc 256",
                                            "GetDevice",
                                            "MallocHost 256",
                                            "PointerGetAttributes",
                                            "Malloc 256",
                                            "GetDevice",
                                            "MallocHost 256",
                                            "work per-thread",
                                            "MemcpyAsync D2H 16 per-thread",
                                            "MemcpyAsync D2H 16 per-thread",
                                            "StreamSynchronize per-thread"}),
             boost::test_tools::per_element());
  BOOST_TEST(caller.right());
  for (int k = 0; k < 3; ++k) {
    BOOST_TEST((caller.run(3) == Error::Ok));
    BOOST_TEST(
        FakeCuda::take_log() ==
            (Lines{"GetDevice", "PointerGetAttributes", "MemcpyAsync H2D 24 per-thread", "PointerGetAttributes",
                   "MemcpyAsync H2D 24 per-thread", "PointerGetAttributes", "PointerGetAttributes", "work per-thread",
                   "MemcpyAsync D2H 24 per-thread", "MemcpyAsync D2H 24 per-thread", "StreamSynchronize per-thread"}),
        boost::test_tools::per_element());
    BOOST_TEST(caller.right());
  }
}

BOOST_AUTO_TEST_CASE(without_a_named_stream_device_memory_is_waited_for_on_the_threads_own) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  FakeCuda::take_log();
  BOOST_TEST((caller.run(2) == Error::Ok));
  BOOST_TEST(FakeCuda::take_log() ==
                 (Lines{"GetDevice", "PointerGetAttributes", "PointerGetAttributes", "PointerGetAttributes",
                        "PointerGetAttributes", "work per-thread", "StreamSynchronize per-thread"}),
             boost::test_tools::per_element());
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_steady_call_sets_nothing_again_wherever_its_memory_lies) {
  FakeCuda cuda;
  for (const Place place : {Place::kMalloc, Place::kPinned, Place::kDevice, Place::kManaged}) {
    DeviceCaller caller(place, place);
    BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
    const auto both_profiles = [&] {
      for (const int profile : {0, 1}) {
        const OptimizationProfileGuard guard(profile);
        BOOST_TEST((caller.run(4) == Error::Ok));
        BOOST_TEST(caller.right());
      }
    };
    both_profiles();
    const FakeEngineLog first = fake_log();
    for (int k = 0; k < 3; ++k) {
      both_profiles();
    }
    BOOST_TEST(fake_log().enqueue == first.enqueue + 6);
    BOOST_TEST(fake_log().contexts == 2);
    BOOST_TEST(fake_log().set_input_shape == first.set_input_shape);
    BOOST_TEST(fake_log().infer == first.infer);
    BOOST_TEST(fake_log().set_input_address == first.set_input_address);
    BOOST_TEST(fake_log().set_output_address == first.set_output_address);
  }
}

BOOST_AUTO_TEST_CASE(level_phases_adds_an_event_before_the_work_and_looks_at_the_call_before_without_waiting) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("phases") == Error::Ok));
  DelegateMetadata tracer;
  OwnStream stream;
  BOOST_TEST((caller.run(2, &tracer) == Error::Ok));
  BOOST_TEST(tracer.of_delegate.find("device_ns") == std::string::npos);
  fake_cuda_run(stream.handle);
  FakeCuda::take_log();
  BOOST_TEST((caller.run(2, &tracer) == Error::Ok));
  BOOST_TEST(FakeCuda::take_log() ==
                 (Lines{"GetDevice", "StreamIsCapturing s1", "EventQuery e1", "EventElapsedTime e2 e3",
                        "PointerGetAttributes", "PointerGetAttributes", "PointerGetAttributes", "PointerGetAttributes",
                        "EventRecord e2 s1", "work s1", "EventRecord e3 s1", "EventRecord e1 s1"}),
             boost::test_tools::per_element());
  BOOST_TEST(tracer.of_delegate.find(R"("device_ns_of_last_call":1000000,"returned_early":true)") != std::string::npos,
             tracer.of_delegate);
  // This time, the call before is still at work: nothing waits for it.
  FakeCuda::take_log();
  BOOST_TEST((caller.run_again(2, &tracer) == Error::Ok));
  BOOST_TEST(tracer.of_delegate.find("device_ns") == std::string::npos);
  for (const std::string& line : FakeCuda::take_log()) {
    BOOST_TEST(line.find("Synchronize") == std::string::npos, line);
  }
  fake_cuda_run(stream.handle);
}

BOOST_AUTO_TEST_CASE(level_phases_times_the_work_of_a_call_that_waits_and_counts_what_it_staged) {
  FakeCuda cuda;
  DeviceCaller caller(Place::kMalloc, Place::kMalloc);
  BOOST_TEST_REQUIRE((caller.load("phases") == Error::Ok));
  DelegateMetadata tracer;
  for (int call = 0; call < 2; ++call) {
    BOOST_TEST((caller.run(2, &tracer) == Error::Ok));
    BOOST_TEST(tracer.of_delegate.find(R"("staged_bytes":64,)") != std::string::npos, tracer.of_delegate);
    BOOST_TEST(tracer.of_delegate.find(R"("device_ns":)") != std::string::npos, tracer.of_delegate);
  }
}

BOOST_AUTO_TEST_CASE(the_callers_device_stays_current) {
  FakeCuda cuda;
  DeviceCaller caller(Place::kDevice, Place::kDevice, 1);
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  FakeCuda::take_log();
  BOOST_TEST((caller.run(2) == Error::Ok));
  BOOST_TEST(caller.right());
  const Lines log = FakeCuda::take_log();
  BOOST_TEST(log.at(0) == "GetDevice");
  BOOST_TEST(log.at(1) == "SetDevice 1");
  BOOST_TEST(log.back() == "SetDevice 0");
}

BOOST_AUTO_TEST_SUITE_END()
