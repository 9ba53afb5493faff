// The three guards, which are one mechanism: how they nest, and what a wrong end does. Some of it is for
// ThreadSanitizer.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "delegate/engine_buffers.h"
#include "device/caller_stream.h"
#include "executorch_tensorrt/cuda_stream_guard.h"
#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "process/log.h"
#include "process/thread_request.h"

using namespace executorch_tensorrt;

namespace {

using Owned = std::shared_ptr<Guard>;

// Guards of one kind by number, and the number that this thread asks for: 0 without a guard.
struct Kind {
  const char* name;
  std::function<Owned(int)> make;
  std::function<int()> asked;
};

constexpr std::size_t kNumbers = 4;

const EngineState& state(int number) {
  static const std::vector<EngineState> states(kNumbers);
  return states.at(static_cast<std::size_t>(number));
}

int number_of_state() {
  static const std::vector<std::shared_ptr<EngineBuffers>> numbered = [] {
    std::vector<std::shared_ptr<EngineBuffers>> buffers{nullptr};
    while (buffers.size() < kNumbers) {
      const EngineStateGuard guard(state(static_cast<int>(buffers.size())));
      buffers.push_back(current_engine_buffers());
    }
    return buffers;
  }();
  return static_cast<int>(std::find(numbered.begin(), numbered.end(), current_engine_buffers()) - numbered.begin());
}

const Kind kKinds[] = {
    {"OptimizationProfileGuard", [](int number) { return std::make_shared<OptimizationProfileGuard>(number); },
     [] { return current_request().index; }},
    {"EngineStateGuard", [](int number) { return std::make_shared<EngineStateGuard>(state(number)); }, number_of_state},
    {"CudaStreamGuard",
     [](int number) { return std::make_shared<CudaStreamGuard>(reinterpret_cast<void*>(std::uintptr_t(number))); },
     [] { return static_cast<int>(reinterpret_cast<std::uintptr_t>(caller_stream().value_or(nullptr))); }}};

void in_thread(const std::function<void()>& work) { std::thread(work).join(); }

std::vector<std::string> taken_texts() {
  std::vector<std::string> texts;
  for (LogMessage& message : take_messages()) {
    texts.push_back(std::move(message.text));
  }
  return texts;
}

// What each test does with each kind; no guard is left, and what is logged is what the test took.
void of_each_kind(const std::function<void(const Kind&)>& test) {
  keep_messages();
  for (const Kind& kind : kKinds) {
    BOOST_TEST_CONTEXT(kind.name) {
      take_messages();
      BOOST_TEST(kind.asked() == 0);
      test(kind);
      BOOST_TEST(kind.asked() == 0);
      BOOST_TEST(taken_texts() == std::vector<std::string>{}, boost::test_tools::per_element());
    }
  }
}

const char kElsewhere[] = ": got its end on another thread, allowed on the thread where it began; end it there";
const char kTooEarly[] = ": got its end while a later one is open, allowed the innermost; end the later one first";

void logged(const Kind& kind, const char* text) {
  const std::vector<std::string> expected{std::string(kind.name) + text};
  BOOST_TEST(taken_texts() == expected, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(guards)

BOOST_AUTO_TEST_CASE(guards_of_a_kind_nest_and_those_of_others_do_not_matter) {
  of_each_kind([](const Kind& kind) {
    std::vector<Owned> others;
    for (const Kind& other : kKinds) {
      others.push_back(other.name == kind.name ? nullptr : other.make(3));
    }
    Owned outer = kind.make(1);
    Owned inner = kind.make(2);
    others.clear();
    BOOST_TEST(kind.asked() == 2);
    BOOST_TEST(inner->end_error() == "");
    BOOST_TEST(outer->end_error() == kind.name + std::string(kTooEarly));
    inner.reset();
    BOOST_TEST(kind.asked() == 1);
    BOOST_TEST(outer->end_error() == "");
  });
}

BOOST_AUTO_TEST_CASE(a_guard_destroyed_on_another_thread_touches_neither_and_is_logged) {
  of_each_kind([](const Kind& kind) {
    const Owned outer = kind.make(1);
    Owned inner = kind.make(2);
    in_thread([&] {
      const Owned own = kind.make(3);
      BOOST_TEST(!inner->is_of_this_thread());
      BOOST_TEST(inner->end_error() == kind.name + std::string(kElsewhere));
      inner.reset();
      BOOST_TEST(kind.asked() == 3);
    });
    logged(kind, kElsewhere);
    BOOST_TEST(kind.asked() == 2);  // nobody else writes what this thread asks for
    BOOST_TEST(outer->end_error() == "");
    BOOST_TEST(kind.asked() == 1);
  });
}

BOOST_AUTO_TEST_CASE(what_was_destroyed_elsewhere_goes_when_a_guard_begins_or_ends_on_its_thread) {
  of_each_kind([](const Kind& kind) {
    Owned left = kind.make(2);
    in_thread([&] { left.reset(); });
    logged(kind, kElsewhere);
    {
      const Owned next = kind.make(1);
      BOOST_TEST(kind.asked() == 1);
    }
    BOOST_TEST(kind.asked() == 0);
  });
}

BOOST_AUTO_TEST_CASE(a_guard_destroyed_before_a_later_one_leaves_that_one_what_it_asks_for) {
  of_each_kind([](const Kind& kind) {
    const Owned outer = kind.make(1);
    Owned middle = kind.make(2);
    Owned inner = kind.make(3);
    middle.reset();
    logged(kind, kTooEarly);
    BOOST_TEST(kind.asked() == 3);
    inner.reset();
    BOOST_TEST(kind.asked() == 1);
  });
}

BOOST_AUTO_TEST_CASE(a_guard_may_be_destroyed_when_its_thread_is_gone) {
  of_each_kind([](const Kind& kind) {
    Owned outer, inner;
    in_thread([&] {
      outer = kind.make(1);
      inner = kind.make(2);
    });
    in_thread([&] {  // perhaps with the id, and the thread-local memory, of the first
      const Owned own = kind.make(3);
      BOOST_TEST(!outer->is_of_this_thread());
      outer.reset();
      logged(kind, kElsewhere);
      inner.reset();
      logged(kind, kElsewhere);
      BOOST_TEST(kind.asked() == 3);
    });
  });
}

BOOST_AUTO_TEST_CASE(guards_work_in_the_destructors_of_a_threads_objects) {
  struct AtEnd {
    ~AtEnd() { work(); }
    std::function<void()> work;
  };
  of_each_kind([](const Kind& kind) {
    in_thread([&] {
      thread_local AtEnd at_end;  // made before the thread's first guard, so it ends after what that made
      at_end.work = [&kind] {
        const Owned outer = kind.make(1);
        {
          const Owned inner = kind.make(2);
          BOOST_TEST(kind.asked() == 2);
        }
        BOOST_TEST(kind.asked() == 1);
      };
      const Owned guard = kind.make(3);
      BOOST_TEST(kind.asked() == 3);
    });
  });
}

BOOST_AUTO_TEST_CASE(guards_are_destroyed_elsewhere_while_their_thread_makes_others) {
  of_each_kind([](const Kind& kind) {
    std::vector<Owned> given(20);
    for (Owned& guard : given) {
      guard = kind.make(1);
    }
    std::thread other([&] { given.clear(); });
    for (int k = 0; k < 20; ++k) {
      const Owned own = kind.make(2);
      BOOST_TEST(kind.asked() == 2);
    }
    other.join();
    {
      const Owned last = kind.make(2);
    }
    take_messages();
  });
}

BOOST_AUTO_TEST_SUITE_END()
