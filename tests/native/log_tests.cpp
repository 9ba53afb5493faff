// What of this library's failures reaches ExecuTorch's log, and what is kept to be taken.
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/profiling_control.h"
#include "process/failure.h"
#include "process/log.h"

using namespace executorch_tensorrt;
using executorch::runtime::Error;

namespace {

struct Line {
  char level;
  std::string text;
};

// ExecuTorch's log of this process, as long as one lives.
struct CapturedLog {
  static CapturedLog*& current() {
    static CapturedLog* log = nullptr;
    return log;
  }

  CapturedLog() {
    static const bool registered = [] {
      executorch::runtime::runtime_init();
      return executorch::runtime::register_pal(executorch::runtime::PalImpl::create(emit, __FILE__));
    }();
    BOOST_TEST_REQUIRE(registered);
    current() = this;
  }
  ~CapturedLog() { current() = nullptr; }

  static void emit(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, std::size_t, const char* text,
                   std::size_t size) {
    if (current() != nullptr) {
      current()->lines.push_back({static_cast<char>(level), std::string(text, size)});
      if (current()->on_line) {
        current()->on_line();
      }
    }
  }

  std::vector<Line> lines;
  std::function<void()> on_line;
};

Status got(int size) {
  return invalid_argument("input 'x_1' dim 0: got " + std::to_string(size) + ", allowed 1..8 in profile 0");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(logging)

BOOST_AUTO_TEST_CASE(a_cause_is_logged_once_however_often_it_comes) {
  CapturedLog log;
  FailureLog failures("method 'forward'");
  for (int call = 0; call < 1000; ++call) {
    BOOST_TEST((failures.report(got(9 + call)) == Error::InvalidArgument));
    BOOST_TEST(take_last_error() == "method 'forward': " + got(9 + call).message());
  }
  BOOST_TEST(log.lines.size() == 1u);
  BOOST_TEST(log.lines[0].text == "method 'forward': " + got(9).message());
  BOOST_TEST(log.lines[0].level == 'E');
}

BOOST_AUTO_TEST_CASE(every_cause_is_logged) {
  CapturedLog log;
  FailureLog failures("method 'forward'");
  for (int call = 0; call < 3; ++call) {
    (void)failures.report(got(9));
    (void)failures.report(invalid_argument("input 'x_2' dim 0: got 9, allowed 1..8 in profile 0"));
    (void)failures.report({StatusCode::kInternal, "the engine failed"});
  }
  BOOST_TEST(log.lines.size() == 3u);
}

BOOST_AUTO_TEST_CASE(causes_are_those_of_one_engine) {
  CapturedLog log;
  for (int load = 0; load < 2; ++load) {
    FailureLog failures("method 'forward'");
    (void)failures.report(got(9));
  }
  BOOST_TEST(log.lines.size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_was_left_out_is_counted_at_the_end) {
  CapturedLog log;
  {
    FailureLog failures("method 'forward'");
    for (int call = 0; call < 5; ++call) {
      (void)failures.report(got(9));
    }
  }
  BOOST_TEST(log.lines.size() == 2u);
  BOOST_TEST(log.lines[1].level == 'I');
  BOOST_TEST(log.lines[1].text == "method 'forward': 4 more messages of causes logged before");
}

BOOST_AUTO_TEST_CASE(causes_differ_in_more_than_numbers) {
  BOOST_TEST(cause_of("got 12, allowed 1..8") == "got #, allowed #..#");
  BOOST_TEST(cause_of("input 'x_1': got 3") == "input 'x_1': got #");
  BOOST_TEST(cause_of("(1, 64)") != cause_of("(1, 64, 3)"));
}

BOOST_AUTO_TEST_CASE(warnings_are_logged_once) {
  CapturedLog log;
  FailureLog failures("method 'forward'");
  failures.warn("no events");
  failures.warn("no events");
  BOOST_TEST(log.lines.size() == 1u);
  BOOST_TEST(log.lines[0].text == "method 'forward': no events");
}

BOOST_AUTO_TEST_CASE(a_long_message_comes_whole_in_several_lines) {
  CapturedLog log;
  const std::string text(1000, 'x');
  log_message(LogLevel::kError, text);
  std::string joined;
  for (const Line& line : log.lines) {
    joined += line.text;
  }
  BOOST_TEST(joined == text);
}

BOOST_AUTO_TEST_CASE(kept_messages_are_taken_once_whole_and_with_their_level) {
  CapturedLog log;
  keep_messages();
  (void)take_messages();
  BOOST_TEST(!has_messages());
  log_message(LogLevel::kError, std::string(1000, 'x'));
  log_message(LogLevel::kWarning, "y");
  BOOST_TEST(has_messages());
  const std::vector<LogMessage> taken = take_messages();
  BOOST_TEST(taken.size() == 2u);
  BOOST_TEST(taken[0].text.size() == 1000u);
  BOOST_TEST((taken[1].level == LogLevel::kWarning));
  BOOST_TEST(!has_messages());
  BOOST_TEST(take_messages().empty());
}

BOOST_AUTO_TEST_CASE(kept_messages_are_bounded_and_the_rest_is_counted) {
  CapturedLog log;
  keep_messages();
  (void)take_messages();
  for (std::size_t k = 0; k < kMaxKept + 7; ++k) {
    log_message(LogLevel::kInfo, std::to_string(k));
  }
  const std::vector<LogMessage> taken = take_messages();
  BOOST_TEST(taken.size() == kMaxKept + 1);
  BOOST_TEST(taken.front().text == "0");
  BOOST_TEST(taken.back().text.find("7 further messages were dropped") == 0u);
  BOOST_TEST(log.lines.size() == kMaxKept + 7);
}

BOOST_AUTO_TEST_CASE(mistakes_with_the_control_and_the_state_are_logged_once) {
  CapturedLog log;
  EngineState state;
  for (int call = 0; call < 10; ++call) {
    BOOST_TEST((state.read("nothing", nullptr, 0) == Error::InvalidArgument));
    BOOST_TEST((set_profiling("loudest") == Error::InvalidArgument));
  }
  BOOST_TEST(log.lines.size() == 2u);
}

// Under Python, ExecuTorch's log may wait for the GIL, and a thread with the GIL for the state's lock.
BOOST_AUTO_TEST_CASE(no_lock_of_a_state_is_held_while_logging) {
  CapturedLog log;
  EngineState state;
  std::future<void> other;
  bool was_free = false;
  log.on_line = [&] {
    other = std::async(std::launch::async, [&] { state.reset(); });
    was_free = other.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  };
  (void)state.write("nothing", nullptr, 0);
  BOOST_TEST(was_free);
}

BOOST_AUTO_TEST_SUITE_END()
