// Buffers that engines own: whose they are, what may be done with them, and what a failure leaves.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "failing_allocations.h"
#include "own_buffers.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

std::vector<float> read(const EngineState& state, const std::string& name = "kv", std::size_t size = 2) {
  std::vector<float> floats(size, -1.0f);
  BOOST_TEST((state.read(name, floats.data(), size * sizeof(float)) == Error::Ok));
  return floats;
}

std::vector<float> two(float value) { return {value, value}; }

std::size_t count(const EngineState& state) { return state.buffers().size(); }

// Loading fails under a state that stays as it is.
void refuses(const EngineState& state, const std::vector<Buffer>& buffers, Error error, const std::string& message) {
  const std::size_t before = count(state);
  const auto delegate = make_delegate(buffers);
  {
    const EngineStateGuard guard(state);
    BOOST_TEST((delegate->init() == error));
  }
  const std::string text = take_last_error();
  BOOST_TEST(text.find(message) != std::string::npos, text);
  BOOST_TEST(count(state) == before);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_state)

BOOST_AUTO_TEST_CASE(delegates_loaded_for_one_state_share_buffers_by_name) {
  EngineState state;
  const auto one = load(state);
  const auto other = load(state, {{"other"}, {}});
  BOOST_TEST((step(*one) == Error::Ok));
  BOOST_TEST((step(*other) == Error::Ok));
  BOOST_TEST(read(state) == two(2));
  BOOST_TEST(read(state, "other") == two(1));
  const auto buffers = state.buffers();
  BOOST_TEST(buffers.size() == 2u);
  BOOST_TEST(buffers[0].name == "kv");
  BOOST_TEST(buffers[0].dtype == "float32");
  BOOST_TEST(buffers[0].sizes == std::vector<std::int64_t>{2});
  BOOST_TEST(buffers[0].nbytes == 8u);
}

BOOST_AUTO_TEST_CASE(a_delegate_without_a_guard_has_buffers_of_its_own) {
  EngineState state;
  const auto shared = load(state);
  const auto own = load();
  BOOST_TEST((step(*own) == Error::Ok));
  BOOST_TEST((step(*own) == Error::Ok));
  BOOST_TEST(read(state) == two(0));
}

BOOST_AUTO_TEST_CASE(guards_nest_and_are_their_threads) {
  EngineState outer, inner;
  {
    const EngineStateGuard first(outer);
    {
      const EngineStateGuard second(inner);
      (void)load({{"a"}});
    }
    (void)load({{"b"}});
    std::thread([] { (void)load({{"c"}}); }).join();
  }
  (void)load({{"d"}});
  BOOST_TEST(count(outer) == 1u);
  BOOST_TEST(outer.buffers()[0].name == "b");
  BOOST_TEST(inner.buffers()[0].name == "a");
}

BOOST_AUTO_TEST_CASE(a_state_is_read_written_and_reset) {
  EngineState state;
  const auto delegate = load(state, {{"kv", "[2]", "float32", "0000803f00000040"}});  // 1.0, 2.0
  BOOST_TEST(read(state) == (std::vector<float>{1, 2}));
  const std::vector<float> written = {10, 20};
  const EngineState copy = state;
  BOOST_TEST((state.write("kv", written.data(), 8) == Error::Ok));
  BOOST_TEST((step(*delegate) == Error::Ok));
  BOOST_TEST(read(copy) == (std::vector<float>{11, 21}));
  state.reset();
  BOOST_TEST(read(copy) == (std::vector<float>{1, 2}));
}

BOOST_AUTO_TEST_CASE(a_wrong_name_or_size_is_refused_and_changes_nothing) {
  EngineState state;
  float floats[4] = {9, 9, 9, 9};
  BOOST_TEST((state.read("kv", floats, 8) == Error::InvalidArgument));
  BOOST_TEST(take_last_error().find("unknown buffer: got 'kv', allowed none, for no method") != std::string::npos);
  const auto delegate = load(state, {{"a"}, {"b"}});
  BOOST_TEST((state.write("kv", floats, 8) == Error::InvalidArgument));
  BOOST_TEST(take_last_error().find("unknown buffer: got 'kv', allowed 'a', 'b'") != std::string::npos);
  for (const std::size_t nbytes : {0, 4, 16}) {
    BOOST_TEST((state.write("a", floats, nbytes) == Error::InvalidArgument));
    BOOST_TEST((state.read("a", floats, nbytes) == Error::InvalidArgument));
    BOOST_TEST(take_last_error().find("buffer 'a': got " + std::to_string(nbytes) + " bytes, allowed 8") !=
               std::string::npos);
  }
  BOOST_TEST(floats[0] == 9.0f);
  BOOST_TEST(read(state, "a") == two(0));
}

BOOST_AUTO_TEST_CASE(a_state_outlives_its_delegates_and_they_outlive_it) {
  EngineState state;
  BOOST_TEST((step(*load(state)) == Error::Ok));
  BOOST_TEST((step(*load(state)) == Error::Ok));
  BOOST_TEST(read(state) == two(2));
  auto delegate = load(EngineState());
  BOOST_TEST((step(*delegate) == Error::Ok));
}

BOOST_AUTO_TEST_CASE(a_buffer_that_differs_is_refused_and_nothing_is_added) {
  EngineState state;
  const auto delegate = load(state);
  const Buffer others[] = {
      {"kv", "[3]", "float32", ""}, {"kv", "[2]", "int32", ""}, {"kv", "[2]", "float32", "0000803f00000040"}};
  for (const Buffer& other : others) {
    refuses(state, {{"before"}, other, {"after"}}, Error::InvalidProgram, "buffer 'kv' is " + other.dtype);
  }
  BOOST_TEST((step(*delegate) == Error::Ok));
  BOOST_TEST(read(state) == two(1));
}

BOOST_AUTO_TEST_CASE(a_buffer_that_cannot_be_made_is_refused_and_nothing_is_added) {
  const EngineState state;
  const auto with = [](Buffer buffer) { return std::vector<Buffer>{{"before"}, std::move(buffer)}; };
  refuses(state, with({"kv", "[2]", "", ""}), Error::InvalidProgram, "buffer 'kv' has no dtype");
  refuses(state, with({"kv", "[2]", "float32", "0000803f"}), Error::InvalidProgram,
          "buffer 'kv' has an initial value of 4 bytes, wanted 8");
  // 2^64 - 4 bytes would be rounded up to none; 2^62 are not to be had.
  for (const char* shape : {"[4611686018427387903]", "[4294967296,4294967296,4294967296]", "[2305843009213693952]"}) {
    refuses(state, with({"kv", shape, "float32", ""}), Error::InvalidProgram, "buffer 'kv' has a size that no memory");
  }
  refuses(state, with({"kv", "[1152921504606846976]", "float32", ""}), Error::MemoryAllocationFailed,
          "no memory for buffer 'kv' of 4611686018427387904 bytes");
}

BOOST_AUTO_TEST_CASE(a_delegate_that_does_not_load_adds_nothing) {
  const EngineState state;
  fake_log() = {};
  fake_log().fail_at = "load";
  refuses(state, {{}}, Error::Internal, "fake failure at load");
  fake_log() = {};
  for (int passing = 0, failed = 1; failed > 0; ++passing) {
    const auto delegate = make_delegate({{"a"}, {"b"}});
    const EngineStateGuard guard(state);
    Error error = Error::Ok;
    {
      const FailingAllocations failing(passing, FailingAllocations::Which::kOne);
      error = delegate->init();
      failed = failing.failed();
    }
    BOOST_TEST((error == (failed > 0 ? Error::MemoryAllocationFailed : Error::Ok)));
    BOOST_TEST(count(state) == (failed > 0 ? 0u : 2u));
  }
}

BOOST_AUTO_TEST_CASE(a_call_that_fails_leaves_the_state) {
  EngineState state;
  const auto delegate = load(state);
  BOOST_TEST((step(*delegate) == Error::Ok));
  BOOST_TEST((step(*delegate, 5) == Error::InvalidArgument));
  int size = 2;
  for (const char* at : {"shape", "infer", "output", "enqueue"}) {
    size = size == 3 ? 4 : 3;  // a new one, so that every step is taken
    fake_log() = {};
    fake_log().fail_at = at;
    BOOST_TEST((step(*delegate, size) == Error::Internal));
    fake_log() = {};
    BOOST_TEST(read(state) == two(1));
  }
  BOOST_TEST((step(*delegate) == Error::Ok));
  BOOST_TEST(read(state) == two(2));
}

BOOST_AUTO_TEST_CASE(a_buffer_without_elements_is_shared_too) {
  EngineState state;
  const auto delegate = load(state, {{"kv", "[0]"}});
  BOOST_TEST((step(*delegate) == Error::Ok));
  BOOST_TEST(read(state, "kv", 0).empty());
}

BOOST_AUTO_TEST_SUITE_END()
