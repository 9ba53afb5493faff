// A caller's ETDump over a buffer of its own, which ends the process when it is full.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "delegate/bounded_tracer.h"
#include "delegate/layer_events.h"
#include "process/log.h"
#include "three_by_three.h"
#include "untyped_etdump.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::etdump::ETDumpGen;
using executorch::runtime::BackendOptions;
using executorch::runtime::Error;
using executorch::runtime::EventTracer;
using executorch::runtime::kUnsetDelegateDebugIntId;

namespace {

constexpr std::size_t kBytes = 300'000;

struct StaticDump {
  explicit StaticDump(std::size_t bytes = kBytes) : buffer(bytes), dump({buffer.data(), buffer.size()}) {
    dump.create_event_block("Execute");
  }
  std::size_t size() { return dump.get_etdump_data().size; }

  std::vector<std::uint8_t> buffer;
  ETDumpGen dump;
};

// A method with the one delegate, as ExecuTorch traces it.
bool call(ThreeByThree& three, EventTracer& tracer) {
  tracer.create_event_block("Execute");
  const auto method = tracer.start_profiling("Method::execute", -1, 0);
  const auto entry = tracer.start_profiling("DELEGATE_CALL", 0, 0);
  three.prepare(2);
  const Error error = three.execute(&tracer);
  tracer.end_profiling(entry);
  tracer.end_profiling(method);
  return error == Error::Ok && three.right();
}

Error load(ThreeByThree& three, const char* level) {
  BackendOptions<1> options;
  (void)options.set_option("torchtrt_profile_level", level);
  return three.delegate.init({options.view().data(), options.view().size()});
}

// ExecuTorch's own events of a call take some 220 bytes.
constexpr int kCalls = 700;

struct Logged {
  Logged() {
    keep_messages();
    (void)take_messages();
  }
  std::size_t count(const std::string& text) const {
    std::size_t found = 0;
    for (const LogMessage& message : take_messages()) {
      found += message.text.find(text) != std::string::npos;
    }
    return found;
  }
};

// Until the tracer takes no more.
std::size_t log_events(BoundedTracer& tracer, std::size_t most, const std::string& metadata = "") {
  std::size_t logged = 0;
  while (logged < most && tracer.left_out() == 0) {
    tracer.log_profiling_delegate("layer", kUnsetDelegateDebugIntId, 1, 2, metadata.data(), metadata.size());
    ++logged;
  }
  return logged - tracer.left_out();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bounded_tracer)

BOOST_AUTO_TEST_CASE(no_level_fills_a_buffer_that_is_large_enough_for_executorchs_own_events) {
  for (const char* level : {"off", "delegate", "phases", "layers"}) {
    StaticDump dump;
    ThreeByThree three;
    BOOST_TEST_REQUIRE((load(three, level) == Error::Ok));
    int right = 0;
    for (int k = 0; k < kCalls; ++k) {
      right += call(three, dump.dump);
    }
    BOOST_TEST(right == kCalls);
    BOOST_TEST(dump.size() > 0u);
  }
}

BOOST_AUTO_TEST_CASE(it_is_said_once_and_counted) {
  const Logged logged;
  StaticDump dump;
  {
    ThreeByThree first;
    ThreeByThree second;
    BOOST_TEST_REQUIRE((load(first, "layers") == Error::Ok));
    BOOST_TEST_REQUIRE((load(second, "layers") == Error::Ok));
    for (int k = 0; k < kCalls / 2; ++k) {
      BOOST_TEST_REQUIRE((call(first, dump.dump) && call(second, dump.dump)));
    }
    BOOST_TEST(logged.count("events of TensorRT delegates are left out of it from now on") == 1u);
  }
  BOOST_TEST(logged.count(" events were left out of an ETDump that was full") == 2u);
}

BOOST_AUTO_TEST_CASE(an_engine_says_it_once_whatever_dumps_get_full) {
  const Logged logged;
  ThreeByThree three;
  BOOST_TEST_REQUIRE((load(three, "phases") == Error::Ok));
  for (int k = 0; k < 2; ++k) {
    StaticDump dump;
    for (int c = 0; c < kCalls / 2; ++c) {
      BOOST_TEST_REQUIRE(call(three, dump.dump));
    }
  }
  BOOST_TEST(logged.count("events of TensorRT delegates are left out of it from now on") == 1u);
}

BOOST_AUTO_TEST_CASE(a_quarter_of_the_buffer_is_taken_and_no_more) {
  StaticDump dump;
  BoundedTracer tracer(dump.dump);
  const std::size_t whole = tracer.bytes();
  BOOST_TEST(whole > kBytes / 2);
  log_events(tracer, 100'000, std::string(40, 'x'));
  BOOST_TEST(tracer.left_out() == 1u);
  BOOST_TEST(tracer.bytes_free() >= whole - whole / 4);
  BOOST_TEST(tracer.bytes_free() < whole - whole / 4 + 256);
}

BOOST_AUTO_TEST_CASE(an_event_larger_than_the_rest_is_left_out) {
  StaticDump dump;
  BoundedTracer tracer(dump.dump);
  const std::string large(kBytes, 'x');
  BOOST_TEST(log_events(tracer, 1, large) == 0u);
  const auto entry = tracer.start_profiling_delegate("torchtrt.delegate", kUnsetDelegateDebugIntId);
  tracer.end_profiling_delegate(entry, large.data(), large.size());
  BOOST_TEST(tracer.left_out() == 2u);
  BOOST_TEST(dump.size() > 0u);
}

BOOST_AUTO_TEST_CASE(an_event_that_began_is_ended_when_the_quarter_is_taken) {
  StaticDump dump;
  BoundedTracer tracer(dump.dump);
  const auto entry = tracer.start_profiling_delegate("torchtrt.delegate", kUnsetDelegateDebugIntId);
  log_events(tracer, 100'000);
  tracer.end_profiling_delegate(entry, "{}", 2);
  BOOST_TEST(tracer.left_out() == 1u);
}

// ETDump lists them in memory apart, whatever room the rest has.
BOOST_AUTO_TEST_CASE(a_call_of_very_many_events_leaves_room_in_the_list_of_a_block) {
  for (const std::size_t bytes : {std::size_t{140'000}, kBytes, std::size_t{16'000'000}}) {
    StaticDump dump(bytes);
    BoundedTracer tracer(dump.dump);
    const std::size_t logged = log_events(tracer, 100'000);
    BOOST_TEST(tracer.left_out() == 1u);
    for (std::size_t k = 0; k < logged / 2; ++k) {
      dump.dump.end_profiling(dump.dump.start_profiling("OPERATOR_CALL", 0, 0));
    }
    BOOST_TEST(dump.size() > 0u);
  }
}

BOOST_AUTO_TEST_CASE(layers_that_are_left_out_are_in_the_calls_event) {
  StaticDump dump;
  BoundedTracer tracer(dump.dump);
  log_events(tracer, 100'000);
  LayerRecords layers(3);
  BOOST_TEST(log_layers(tracer, layers) == 3u);
}

BOOST_AUTO_TEST_CASE(a_dump_that_grows_takes_all) {
  ETDumpGen dump;
  dump.create_event_block("Execute");
  BoundedTracer tracer(dump);
  BOOST_TEST(log_events(tracer, 100'000) == 100'000u);
  std::free(dump.get_etdump_data().buf);
}

#if defined(__has_feature)
#define ETRT_HAS_FEATURE(name) __has_feature(name)
#else
#define ETRT_HAS_FEATURE(name) 0
#endif
#if !ETRT_HAS_FEATURE(undefined_behavior_sanitizer)  // which looks for the type at each call
BOOST_AUTO_TEST_CASE(a_tracer_without_a_type_takes_all) {
  std::vector<std::uint8_t> buffer(kBytes);
  const auto dump = untyped_etdump({buffer.data(), buffer.size()});
  dump->create_event_block("Execute");
  BoundedTracer tracer(*dump);
  BOOST_TEST(tracer.bytes() == 0u);
  BOOST_TEST(log_events(tracer, 1'000) == 1'000u);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
