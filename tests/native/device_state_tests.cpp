// Buffers that engines on a device own: two blocks of device memory that change places, in the order of the calls on
// whatever streams, and as they were where a call fails.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device_caller.h"
#include "own_buffers.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

const Buffer kTwoBlocks = {"kv", "[2]", "float32", "", false};

// A machine, a state, and the memory of a caller of engines that share it.
struct Machine {
  explicit Machine(Place place = Place::kDevice) : x(4, place), y(4, place) {
    fake_log() = {};
    fake_log().device = FakeCuda::device();
    fake_log().first_grown = 1;
    x.fill(3.0f);
  }

  std::unique_ptr<Delegate> load(const std::vector<Buffer>& buffers = {kTwoBlocks}, bool use_graphs = false) {
    register_fake_engine();
    auto delegate = std::make_unique<Delegate>(fake_blob(buffers_metadata(buffers)));
    executorch::runtime::BackendOptions<1> options;
    BOOST_TEST_REQUIRE((options.set_option(kCudaGraphsKey, use_graphs) == Error::Ok));
    const auto view = options.view();
    const EngineStateGuard guard(state);
    loaded = delegate->init({view.data(), view.size()});
    return delegate;
  }

  // A call adds one to every element of every buffer.
  Error step(Delegate& delegate, int size = 2) { return step(delegate, x.data(), size); }
  Error step(Delegate& delegate, void* input, int size = 2) {
    const auto in = executorch::extension::from_blob(input, {size});
    const auto out = executorch::extension::from_blob(y.data(), {4});
    Delegate::EValue values[] = {Delegate::EValue(*in), Delegate::EValue(*out)};
    std::vector<Delegate::EValue*> args = {&values[0], &values[1]};
    return delegate.execute(args);
  }

  void steps(Delegate& delegate, int count) {
    for (int k = 0; k < count; ++k) {
      BOOST_TEST((step(delegate) == Error::Ok));
    }
  }

  float value(const std::string& name = "kv") const {
    float floats[2] = {-1, -2};
    BOOST_TEST((state.read(name, floats, sizeof(floats)) == Error::Ok));
    BOOST_TEST(floats[0] == floats[1]);
    return floats[0];
  }

  FakeCuda cuda;
  Block<float> x, y;
  EngineState state;
  Error loaded = Error::Ok;
};

int count(const std::vector<std::string>& lines, const std::string& part) {
  int found = 0;
  for (const std::string& line : lines) {
    found += line.find(part) != std::string::npos;
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_state)

BOOST_AUTO_TEST_CASE(a_call_swaps_two_blocks_and_copies_nothing) {
  Machine m;
  const int before = fake_cuda_allocations();
  const auto delegate = m.load();
  BOOST_TEST(fake_cuda_allocations() == before + 2);
  OwnStream stream;
  FakeCuda::take_log();
  m.steps(*delegate, 3);
  const auto log = FakeCuda::take_log();
  BOOST_TEST(count(log, "work s1") == 3);
  BOOST_TEST(count(log, "Mem") + count(log, "Wait") + count(log, "Synchronize") == 0);
  BOOST_TEST(m.value() == 3.0f);
  BOOST_TEST(*m.y.begin() == 3.0f);
}

BOOST_AUTO_TEST_CASE(an_engine_that_writes_in_place_has_one_block) {
  Machine m;
  const int before = fake_cuda_allocations();
  const auto in_place = m.load({{}});
  BOOST_TEST(fake_cuda_allocations() == before + 1);
  const auto delegate = m.load();
  BOOST_TEST(fake_cuda_allocations() == before + 2);
  OwnStream stream;
  m.steps(*in_place, 1);
  m.steps(*delegate, 1);
  m.steps(*in_place, 1);
  BOOST_TEST(m.value() == 3.0f);
}

BOOST_AUTO_TEST_CASE(memory_on_the_host_takes_part_as_before) {
  Machine m(Place::kMalloc);
  const auto delegate = m.load({kTwoBlocks, {"in_place"}});
  m.steps(*delegate, 3);
  BOOST_TEST(m.value() == 3.0f);
  BOOST_TEST(m.value("in_place") == 3.0f);
}

BOOST_AUTO_TEST_CASE(a_graph_for_each_order_of_the_blocks_is_replayed) {
  Machine m;
  const auto delegate = m.load({kTwoBlocks}, true);
  OwnStream stream;
  m.steps(*delegate, 4);
  BOOST_TEST(fake_log().enqueue == 6);  // and two recordings
  FakeCuda::take_log();
  m.steps(*delegate, 7);
  const auto log = FakeCuda::take_log();
  BOOST_TEST(count(log, "GraphLaunch") == 7);
  BOOST_TEST(count(log, "Mem") == 0);
  BOOST_TEST(m.value() == 11.0f);
}

BOOST_AUTO_TEST_CASE(arrays_at_new_addresses_are_moved_and_the_blocks_are_not) {
  Machine m;
  const auto delegate = m.load({{"kv", "[64]", "float32", "", false}}, true);
  OwnStream stream;
  std::vector<std::unique_ptr<Block<float>>> inputs;
  FakeCuda::take_log();
  for (int k = 0; k < 12; ++k) {
    inputs.push_back(std::make_unique<Block<float>>(2, Place::kDevice));
    BOOST_TEST((m.step(*delegate, inputs.back()->data()) == Error::Ok));
  }
  const auto log = FakeCuda::take_log();
  BOOST_TEST(count(log, "GraphLaunch") == 4);
  BOOST_TEST(count(log, "MemcpyAsync D2D 8 ") == 16);
  BOOST_TEST(count(log, "Memcpy") == 16);
  std::vector<float> floats(64);
  BOOST_TEST((m.state.read("kv", floats.data(), 256) == Error::Ok));
  BOOST_TEST(floats == std::vector<float>(64, 12.0f));
}

BOOST_AUTO_TEST_CASE(engines_on_different_streams_take_turns_on_the_device) {
  Machine m;
  const auto prefill = m.load();
  const auto decode = m.load();
  void* const first = fake_cuda_stream_create(0);
  void* const second = fake_cuda_stream_create(0);
  {
    const CudaStreamGuard guard(first);
    m.steps(*prefill, 1);
  }
  FakeCuda::take_log();
  {
    const CudaStreamGuard guard(second);
    m.steps(*decode, 2);
    BOOST_TEST(count(FakeCuda::take_log(), "StreamWaitEvent s2 e1") == 1);
  }
  {
    const CudaStreamGuard guard(first);
    m.steps(*prefill, 1);
    BOOST_TEST(count(FakeCuda::take_log(), "StreamWaitEvent s1 e2") == 1);
  }
  BOOST_TEST(fake_cuda_pending(second) == 2);
  fake_cuda_run(first);
  BOOST_TEST(fake_cuda_pending(second) == 0);
  BOOST_TEST(m.value() == 4.0f);
  {
    const CudaStreamGuard guard(first);
    m.steps(*prefill, 1);
    m.steps(*decode, 1);
    BOOST_TEST(count(FakeCuda::take_log(), "StreamWaitEvent s1 e1") == 0);
  }
  m.steps(*prefill, 1);  // on the thread's own, which waits
  BOOST_TEST(fake_cuda_pending(first) == 0);
  BOOST_TEST(m.value() == 7.0f);
  fake_cuda_stream_destroy(first);
  fake_cuda_stream_destroy(second);
}

BOOST_AUTO_TEST_CASE(an_engine_that_ends_leaves_the_state_and_a_state_that_ends_waits) {
  Machine m;
  OwnStream stream;
  auto prefill = m.load();
  m.steps(*prefill, 1);
  prefill->destroy();
  auto decode = m.load();
  m.steps(*decode, 1);
  BOOST_TEST(m.value() == 2.0f);
  m.steps(*decode, 1);
  BOOST_TEST(fake_cuda_pending(stream.handle) == 1);
  m.state = EngineState();
  decode->destroy();
  BOOST_TEST(fake_cuda_pending(stream.handle) == 0);
}

BOOST_AUTO_TEST_CASE(a_state_is_read_written_and_reset_behind_work_under_way) {
  Machine m;
  const auto delegate = m.load({{"kv", "[2]", "float32", "0000803f0000803f", false}, {"zeros", "[2]", "float32", ""}});
  OwnStream stream;
  m.steps(*delegate, 2);
  BOOST_TEST(fake_cuda_pending(stream.handle) == 2);
  BOOST_TEST(m.value() == 3.0f);
  BOOST_TEST(fake_cuda_pending(stream.handle) == 0);
  const float written[2] = {10, 10};
  m.steps(*delegate, 1);
  BOOST_TEST((m.state.write("kv", written, sizeof(written)) == Error::Ok));
  m.steps(*delegate, 1);
  BOOST_TEST(m.value() == 11.0f);
  BOOST_TEST(m.value("zeros") == 4.0f);
  m.steps(*delegate, 1);
  BOOST_TEST((m.state.reset() == Error::Ok));
  BOOST_TEST(m.value() == 1.0f);
  BOOST_TEST(m.value("zeros") == 0.0f);
}

BOOST_AUTO_TEST_CASE(a_state_whose_device_fails_says_so) {
  for (const char* function : {"cudaEventSynchronize", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMemsetAsync"}) {
    for (int action = 0; action < 3; ++action) {
      Machine m;
      const auto delegate = m.load();
      OwnStream stream;
      m.steps(*delegate, 1);
      float floats[2] = {5, 5};
      fake_cuda_fail(function, 0, 700, 0);
      const Error error = action == 0   ? m.state.read("kv", floats, 8)
                          : action == 1 ? m.state.write("kv", floats, 8)
                                        : m.state.reset();
      BOOST_TEST((error == (fake_cuda_failed() ? Error::Internal : Error::Ok)));
      if (fake_cuda_failed()) {
        const std::string text = take_last_error();
        BOOST_TEST(text.find("engine state: ") == 0u, text);
        BOOST_TEST(text.find("an illegal memory access was encountered") != std::string::npos, text);
      }
      fake_cuda_fail("", 0, 0, 0);
      BOOST_TEST((m.state.reset() == Error::Ok));
      m.steps(*delegate, 1);
      BOOST_TEST(m.value() == 1.0f);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_call_that_fails_leaves_the_state_as_it_was) {
  int injected = 0;
  for (const Place place : {Place::kMalloc, Place::kDevice}) {
    for (const bool named : {false, true}) {
      for (const char* function : {"cudaMalloc", "cudaPointerGetAttributes", "cudaMemcpyAsync", "cudaStreamSynchronize",
                                   "cudaStreamWaitEvent", "cudaStreamIsCapturing", "cudaEventRecord"}) {
        for (const bool late : {false, true}) {
          for (int position = 0; position < 6; ++position) {
            if (late && function == std::string("cudaMalloc")) {
              continue;  // what it made would be nobody's
            }
            Machine m(place);
            const auto other = m.load();
            const auto delegate = m.load();
            {
              OwnStream before;
              m.steps(*other, 1);
            }
            std::optional<OwnStream> stream;
            if (named) {
              stream.emplace();
            }
            fake_cuda_fail(function, position, function == std::string("cudaMalloc") ? 2 : 700, late);
            const Error error = m.step(*delegate);
            const bool failed = fake_cuda_failed();
            fake_cuda_fail("", 0, 0, 0);
            injected += failed;
            BOOST_TEST_CONTEXT(function << " " << position << " late " << late << " named " << named) {
              BOOST_TEST((failed == (error != Error::Ok)));
              BOOST_TEST(m.value() == (error == Error::Ok ? 2.0f : 1.0f));
              m.steps(*delegate, 1);
              BOOST_TEST(m.value() == (error == Error::Ok ? 3.0f : 2.0f));
              BOOST_TEST(fake_log().disturbed_at_work == 0);
            }
          }
        }
      }
    }
  }
  BOOST_TEST(injected > 20);
}

BOOST_AUTO_TEST_CASE(an_engine_that_fails_or_infers_another_shape_leaves_the_state_as_it_was) {
  Machine m;
  const auto delegate = m.load();
  OwnStream stream;
  m.steps(*delegate, 1);
  int size = 2;
  for (const char* at : {"shape", "infer", "output", "enqueue"}) {
    size = size == 3 ? 4 : 3;
    fake_log().fail_at = at;
    BOOST_TEST((m.step(*delegate, size) == Error::Internal));
    fake_log().fail_at.clear();
    BOOST_TEST(m.value() == 1.0f);
  }
  BOOST_TEST((m.step(*delegate, 5) == Error::InvalidArgument));
  fake_log().infer_as = {{1, make_shape(std::vector<std::int64_t>{3})}};
  BOOST_TEST((m.step(*delegate, 1) == Error::InvalidArgument));
  const std::string text = take_last_error();
  BOOST_TEST(text.find("output 'kv_out' is a buffer's next value of another shape: got (3,), allowed (2,)") !=
                 std::string::npos,
             text);
  fake_log().infer_as.clear();
  m.steps(*delegate, 1);
  BOOST_TEST(m.value() == 2.0f);
}

BOOST_AUTO_TEST_CASE(a_buffer_that_the_device_has_no_memory_for_is_refused_and_nothing_is_left) {
  for (int position = 0; position < 4; ++position) {
    Machine m;
    fake_cuda_fail("cudaMalloc", position, 2, 0);
    const int before = fake_cuda_allocations();
    const auto delegate = m.load({kTwoBlocks, {"other", "[2]", "float32", "", false}});
    BOOST_TEST(fake_cuda_failed());
    BOOST_TEST((m.loaded == Error::MemoryAllocationFailed));
    const std::string text = take_last_error();
    BOOST_TEST(
        text.find(std::string("device memory for buffer '") + (position < 2 ? "kv'" : "other'")) != std::string::npos,
        text);
    BOOST_TEST(fake_cuda_allocations() == before);
    BOOST_TEST(m.state.buffers().empty());
  }
}

BOOST_AUTO_TEST_CASE(a_buffer_on_the_host_and_on_a_device_is_refused) {
  Machine m;
  const auto on_device = m.load();
  fake_log().device.reset();
  const auto on_host = m.load();
  BOOST_TEST((m.loaded == Error::InvalidProgram));
  std::string text = take_last_error();
  BOOST_TEST(text.find("buffer 'kv' is on the host here and on CUDA device 0 in a method loaded before; methods that "
                       "share a state have their engines in one place") != std::string::npos,
             text);
  fake_log().device = FakeCuda::device(1);
  const auto elsewhere = m.load();
  BOOST_TEST((m.loaded == Error::InvalidProgram));
  text = take_last_error();
  BOOST_TEST(text.find("buffer 'kv' is on CUDA device 1 here and on CUDA device 0") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(an_engine_without_int64_has_buffers_of_int32) {
  Machine m;
  fake_log().narrows_int64 = true;
  fake_log().first_grown = SIZE_MAX;
  const auto delegate = m.load({{"kv", "[2]", "int64", "0500000000000000feffffffffffffff", false}});
  BOOST_TEST_REQUIRE((m.loaded == Error::Ok), take_last_error());
  const auto buffers = m.state.buffers();
  BOOST_TEST(buffers[0].dtype == "int32");
  BOOST_TEST(buffers[0].nbytes == 8u);
  OwnStream stream;
  m.steps(*delegate, 1);
  std::int32_t numbers[2];
  BOOST_TEST((m.state.read("kv", numbers, sizeof(numbers)) == Error::Ok));
  BOOST_TEST(numbers[0] == 5);
  BOOST_TEST(numbers[1] == -2);
  (void)m.load({{"large", "[1]", "int64", "0000000001000000", false}});
  BOOST_TEST((m.loaded == Error::InvalidProgram));
  const std::string text = take_last_error();
  BOOST_TEST(text.find("buffer 'large' begins with 4294967296, allowed are numbers of 32 bits") != std::string::npos,
             text);
}

BOOST_AUTO_TEST_SUITE_END()
