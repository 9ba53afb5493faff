// Every failure at every position: an error in words, the last outputs as they were, a next call that is right, and
// nothing left behind.
#include <boost/test/unit_test.hpp>
#include <new>
#include <stdexcept>

#include "executorch_tensorrt/optimization_profile_guard.h"
#include "three_by_three.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;
using executorch::runtime::EValue;

namespace {

// How an engine fails, and what the caller gets.
const struct Way {
  std::function<void()> throws;
  Error error;
  std::string text;
} kWays[] = {
    {nullptr, Error::Internal, "fake failure at "},
    {[] { throw std::runtime_error("fake exception"); }, Error::Internal, "fake exception"},
    {[] { throw std::bad_alloc(); }, Error::MemoryAllocationFailed, "out of host memory"},
    {[] { throw 7; }, Error::Internal, "unknown exception"},
};

// What ran before the call that fails, and the request of that call, which has 3 rows.
const struct History {
  std::vector<int> rows;
  int profile;
} kHistories[] = {{{}, 0}, {{2}, 0}, {{3}, 0}, {{2, 3, 4}, 0}, {{3}, 1}};

constexpr const char* kSteps[] = {"context", "shape", "infer", "input", "output", "enqueue"};

// Fails the step's call number `position`. False when the delegate calls it less often.
bool fails_at(const char* step, int position, const Way& way, const History& history) {
  {
    ThreeByThree three;
    BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
    for (const int rows : history.rows) {
      BOOST_TEST_REQUIRE((three.run(rows) == Error::Ok));
    }
    const ThreeByThree::Seen before = three.seen();
    const OptimizationProfileGuard guard(history.profile);
    fake_log().fail_at = step;
    fake_log().fail_after = position;
    fake_log().throw_there = way.throws;
    const Error error = three.run(3);
    if (fake_log().failed == 0) {
      return false;
    }
    fake_log().fail_at.clear();
    const std::string text = take_last_error();
    BOOST_TEST((error == way.error));
    BOOST_TEST(text.find("method 'forward', engine 0123456789ab: " + way.text) == 0u, text);
    BOOST_TEST((three.seen() == before));
    for (const int rows : {3, 4}) {
      BOOST_TEST((three.run(rows) == Error::Ok));
      BOOST_TEST(three.right());
    }
  }
  BOOST_TEST(ThreeByThree::nothing_is_left());
  return true;
}

// What an argument of a call may have in place of what the delegate takes.
struct WrongArgument {
  explicit WrongArgument(std::size_t argument)
      : name(std::string(argument < 3 ? "input '" : "output '") + "abcxyz"[argument] + "'"),
        ints(executorch::extension::make_tensor_ptr({3, 2}, std::vector<std::int64_t>(6))),
        columns(executorch::extension::make_tensor_ptr({3, 2}, std::vector<float>(6), {1, 0}, {1, 3})),
        no_memory(executorch::aten::ScalarType::Float, 2, sizes, nullptr, order, strides) {}

  std::string name;
  executorch::extension::TensorPtr ints;
  executorch::extension::TensorPtr columns;
  executorch::aten::SizesType sizes[2] = {3, 2};
  executorch::aten::DimOrderType order[2] = {0, 1};
  executorch::aten::StridesType strides[2] = {2, 1};
  executorch::aten::TensorImpl no_memory;
};

// One call with 3 rows in which the argument is `wrong`.
void refuses(ThreeByThree& three, std::size_t argument, EValue wrong, const std::string& text) {
  BOOST_TEST_REQUIRE((three.run(2) == Error::Ok));
  const ThreeByThree::Seen before = three.seen();
  const int enqueued = fake_log().enqueue;
  three.prepare(3);
  three.values[argument] = wrong;
  BOOST_TEST((three.execute() == Error::InvalidArgument));
  const std::string told = take_last_error();
  BOOST_TEST(told.find(text) != std::string::npos, told);
  BOOST_TEST(fake_log().enqueue == enqueued);
  BOOST_TEST((three.seen() == before));
  BOOST_TEST((three.run(3) == Error::Ok));
  BOOST_TEST(three.right());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(failure)

BOOST_AUTO_TEST_CASE(an_engine_that_fails_anywhere_leaves_the_last_outputs_and_a_delegate_that_works) {
  int injected = 0;
  for (const Way& way : kWays) {
    for (const History& history : kHistories) {
      for (const char* step : kSteps) {
        for (int position = 0; fails_at(step, position, way, history); ++position) {
          ++injected;
        }
      }
    }
  }
  // Each way: 12 calls of the engine for a new profile, 11 for new shapes, 4 for new inputs of the last shapes.
  BOOST_TEST(injected == 4 * (12 + 11 + 4 + 11 + 12));
}

BOOST_AUTO_TEST_CASE(an_engine_that_does_not_load_leaves_nothing) {
  for (const Way& way : kWays) {
    ThreeByThree three;
    fake_log().fail_at = "load";
    fake_log().throw_there = way.throws;
    BOOST_TEST((three.delegate.init() == way.error));
    const std::string text = take_last_error();
    BOOST_TEST(text.find("method 'forward': " + way.text) == 0u, text);
    fake_log().fail_at.clear();
    BOOST_TEST((three.delegate.init() == Error::Ok));
    BOOST_TEST((three.run(2) == Error::Ok));
    BOOST_TEST(three.right());
  }
}

BOOST_AUTO_TEST_CASE(an_output_that_does_not_take_its_shape_leaves_all_outputs) {
  ThreeByThree three;
  BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
  const std::vector<std::vector<std::int64_t>> shapes = {{17, 2}, {3}, {-1, 2}, {(1LL << 32) + 3, 2}, {3, 2, 1}};
  for (std::size_t output = 0; output < 3; ++output) {
    for (const auto& dims : shapes) {
      BOOST_TEST_REQUIRE((three.run(2) == Error::Ok));
      const ThreeByThree::Seen before = three.seen();
      fake_log().infer_as = {{output, make_shape(dims)}};
      BOOST_TEST((three.run(3) == Error::InvalidArgument));
      fake_log().infer_as.clear();
      const std::string text = take_last_error();
      const std::string name(1, "xyz"[output]);
      BOOST_TEST(text.find("output '" + name + "': " + to_string(make_shape(dims)) + " does not fit the memory") !=
                     std::string::npos,
                 text);
      BOOST_TEST((three.seen() == before));
      BOOST_TEST((three.run(4) == Error::Ok));
      BOOST_TEST(three.right());
    }
  }
}

BOOST_AUTO_TEST_CASE(an_argument_that_is_wrong_is_named_and_nothing_runs) {
  ThreeByThree three;
  BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
  for (std::size_t argument = 0; argument < 6; ++argument) {
    WrongArgument wrong(argument);
    refuses(three, argument, EValue(static_cast<std::int64_t>(3)), wrong.name + " is no tensor");
    refuses(three, argument, EValue(*wrong.ints), wrong.name + ": got dtype int64, allowed float32");
    refuses(three, argument, EValue(*wrong.columns), wrong.name + ": got a dim order that is not contiguous");
    refuses(three, argument, EValue(executorch::aten::Tensor(&wrong.no_memory)), wrong.name + " has no memory");
  }
}

BOOST_AUTO_TEST_CASE(an_input_outside_its_profile_is_named_and_nothing_runs) {
  ThreeByThree three;
  BOOST_TEST_REQUIRE((three.delegate.init() == Error::Ok));
  for (std::size_t input = 0; input < 3; ++input) {
    const std::string name = std::string("input '") + "abc"[input] + "'";
    const auto rows = executorch::extension::zeros({5, 2});
    refuses(three, input, EValue(*rows), name + " dim 0: got 5, allowed 1..4 in profile 0");
    const auto rank = executorch::extension::zeros({2});
    refuses(three, input, EValue(*rank), name + ": got rank 1 (2,), allowed rank 2");
  }
}

BOOST_AUTO_TEST_SUITE_END()
