// Calls on a stream that the caller captures into a graph of his own: joined where all that they need is there and
// stays, else refused with the capture as it was.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "caller_graphs.h"
#include "delegate_metadata.h"
#include "device_caller.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"
#include "own_buffers.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

// A graph of the caller's, of what `calls` queue on the stream. The capture has to succeed.
class CallersGraph {
 public:
  template <typename Calls>
  CallersGraph(void* stream, Calls&& calls) {
    void* graph = nullptr;
    BOOST_TEST_REQUIRE(cudaStreamBeginCapture(stream, 0) == 0);
    calls();
    BOOST_TEST_REQUIRE(cudaStreamEndCapture(stream, &graph) == 0);
    BOOST_TEST_REQUIRE(cudaGraphInstantiateWithFlags(&exec_, graph, 0) == 0);
    BOOST_TEST(cudaGraphDestroy(graph) == 0);
  }
  ~CallersGraph() { BOOST_TEST(cudaGraphExecDestroy(exec_) == 0); }

  void launch(void* stream) {
    BOOST_TEST(cudaGraphLaunch(exec_, stream) == 0);
    fake_cuda_run(stream);
  }

 private:
  void* exec_ = nullptr;
};

// The graph of one call, which is joined.
std::unique_ptr<CallersGraph> joined(DeviceCaller& caller, void* stream, int rows = 3) {
  return std::make_unique<CallersGraph>(stream, [&] {
    BOOST_TEST((caller.run(rows) == Error::Ok));
    BOOST_TEST(caller.untouched());
  });
}

void refuses(DeviceCaller& caller, void* stream, const std::string& text, int rows = 3) {
  const CallersGraph graph(stream, [&] {
    const int enqueued = fake_log().enqueue;
    const auto before = caller.seen();
    BOOST_TEST((caller.run_again(rows) == Error::InvalidArgument));
    const std::string told = take_last_error();
    BOOST_TEST(told.find("the caller's stream is being captured into a CUDA graph: " + text) != std::string::npos,
               told);
    BOOST_TEST(fake_log().enqueue == enqueued);
    BOOST_TEST((caller.seen() == before));
  });
}

void launch_and_compare(DeviceCaller& caller, CallersGraph& graph, void* stream) {
  for (int k = 0; k < 2; ++k) {
    caller.memory[k]->fill(++caller.next_value);
    caller.memory[k + 2]->fill(-1.0f);
  }
  graph.launch(stream);
  BOOST_TEST(caller.right());
}

constexpr const char* kShapes = "got shapes that optimization profile 0 was not used with last";

}  // namespace

BOOST_AUTO_TEST_SUITE(device_capture)

BOOST_AUTO_TEST_CASE(a_call_is_joined_and_runs_whenever_the_graph_does) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  BOOST_TEST((caller.run(3) == Error::Ok));
  fake_cuda_run(stream.handle);
  FakeCuda::take_log();
  const auto graph = joined(caller, stream.handle);
  for (const std::string& line : FakeCuda::take_log()) {
    BOOST_TEST(line.find("EventRecord") == std::string::npos, line);
    BOOST_TEST(line.find("WaitEvent") == std::string::npos, line);
  }
  for (int launch = 0; launch < 10; ++launch) {
    launch_and_compare(caller, *graph, stream.handle);
  }
  BOOST_TEST((caller.run(3) == Error::Ok));
  fake_cuda_run(stream.handle);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_joined_call_waits_for_the_engines_earlier_work_and_breaks_no_capture) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream before;
  BOOST_TEST((caller.run(3) == Error::Ok));
  BOOST_TEST(fake_cuda_pending(before.handle) == 1);
  OwnStream stream;
  CallersGraph graph(stream.handle, [&] { BOOST_TEST((caller.run_again(3) == Error::Ok)); });
  BOOST_TEST(fake_cuda_pending(before.handle) == 0);
  launch_and_compare(caller, graph, stream.handle);
}

BOOST_AUTO_TEST_CASE(a_call_of_another_kind_than_the_last_is_refused_and_joined_after_one) {
  FakeCuda cuda;
  for (const bool use_graphs : {false, true}) {
    DeviceCaller caller;
    BOOST_TEST_REQUIRE((caller.load("off", use_graphs) == Error::Ok));
    OwnStream stream;
    refuses(caller, stream.handle, kShapes);
    BOOST_TEST(fake_log().contexts == 0);
    for (const int rows : {3, 3, 4}) {  // graphs of ours know 3, the context has 4
      BOOST_TEST((caller.run(rows) == Error::Ok));
    }
    refuses(caller, stream.handle, kShapes);
    BOOST_TEST((caller.run(3) == Error::Ok));
    fake_cuda_run(stream.handle);
    const auto graph = joined(caller, stream.handle);
    launch_and_compare(caller, *graph, stream.handle);
    caller.delegate.destroy();
  }
}

BOOST_AUTO_TEST_CASE(what_would_be_staged_is_refused) {
  FakeCuda cuda;
  for (const auto& [inputs, outputs, name] :
       {std::tuple{Place::kMalloc, Place::kDevice, "a"}, {Place::kDevice, Place::kPinned, "x"}}) {
    DeviceCaller caller(inputs, outputs);
    BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
    OwnStream stream;
    BOOST_TEST((caller.run(3) == Error::Ok));
    refuses(caller, stream.handle, std::string("got '") + name + "', which the engine has a copy of");
    BOOST_TEST((caller.run(3) == Error::Ok));
    BOOST_TEST(caller.right());
  }
}

BOOST_AUTO_TEST_CASE(level_layers_is_refused_and_others_are_told_of_the_capture) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load("layers") == Error::Ok));
  DelegateMetadata tracer;
  OwnStream stream;
  BOOST_TEST((caller.run(3, &tracer) == Error::Ok));
  refuses(caller, stream.handle, "got level layers, allowed the others");
  BOOST_TEST((set_profiling("phases") == Error::Ok));
  BOOST_TEST((caller.run(3, &tracer) == Error::Ok));
  {
    // The call before is not waited for by its trace, and the level of the next call is not taken over.
    BOOST_TEST((set_profiling("layers") == Error::Ok));
    const CallersGraph graph(stream.handle, [&] { BOOST_TEST((caller.run_again(3, &tracer) == Error::Ok)); });
    BOOST_TEST(tracer.of_delegate.find(R"("captured":true)") != std::string::npos, tracer.of_delegate);
    BOOST_TEST(tracer.of_delegate.find("device_ns") == std::string::npos, tracer.of_delegate);
  }
  clear_profiling();
  BOOST_TEST((caller.run(3) == Error::Ok));
  fake_cuda_run(stream.handle);
  BOOST_TEST(caller.right());
}

BOOST_AUTO_TEST_CASE(a_graph_of_the_callers_works_after_all_that_ends_contexts) {
  FakeCuda cuda;
  DeviceCaller caller;
  BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
  OwnStream stream;
  BOOST_TEST((caller.run(3) == Error::Ok));
  fake_cuda_run(stream.handle);
  const auto graph = joined(caller, stream.handle);
  for (int round = 0; round < 3; ++round) {
    BOOST_TEST((set_profiling("layers") == Error::Ok));
    BOOST_TEST((caller.run(3) == Error::Ok));
    clear_profiling();
    BOOST_TEST((caller.run(3) == Error::Ok));
    fake_log().fail_at = "enqueue";
    BOOST_TEST((caller.run(3) == Error::Internal));
    fake_log().fail_at.clear();
    fake_cuda_run(stream.handle);
    BOOST_TEST(fake_log().disturbed_at_work == 0);
    launch_and_compare(caller, *graph, stream.handle);
  }
}

BOOST_AUTO_TEST_CASE(an_engine_that_fails_in_a_capture_leaves_earlier_graphs_and_works_again) {
  FakeCuda cuda;
  for (const auto& throws : std::vector<std::function<void()>>{nullptr, [] { throw std::bad_alloc(); }}) {
    DeviceCaller caller;
    BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
    OwnStream stream;
    BOOST_TEST((caller.run(3) == Error::Ok));
    fake_cuda_run(stream.handle);
    const auto graph = joined(caller, stream.handle);
    fake_log().fail_at = "enqueue";
    fake_log().throw_there = throws;
    {
      const CallersGraph failed(stream.handle, [&] { BOOST_TEST((caller.run(3) != Error::Ok)); });
    }
    fake_log().fail_at.clear();
    launch_and_compare(caller, *graph, stream.handle);
    BOOST_TEST((caller.run(3) == Error::Ok));
    fake_cuda_run(stream.handle);
    BOOST_TEST(caller.right());
    BOOST_TEST(fake_log().disturbed_at_work == 0);
  }
}

BOOST_AUTO_TEST_CASE(buffers_that_are_written_in_place_are_joined_and_those_in_two_blocks_are_not) {
  for (const bool in_place : {true, false}) {
    FakeCuda cuda;
    fake_log() = {};
    fake_log().device = FakeCuda::device();
    fake_log().first_grown = 1;
    Block<float> x(4, Place::kDevice), y(4, Place::kDevice);
    EngineState state;
    const auto delegate = load(state, {{"kv", "[2]", "float32", "", in_place}});
    OwnStream stream;
    const auto step = [&] {
      const auto in = executorch::extension::from_blob(x.data(), {2});
      const auto out = executorch::extension::from_blob(y.data(), {4});
      Delegate::EValue values[] = {Delegate::EValue(*in), Delegate::EValue(*out)};
      std::vector<Delegate::EValue*> args = {&values[0], &values[1]};
      return delegate->execute(args);
    };
    BOOST_TEST((step() == Error::Ok));
    CallersGraph graph(stream.handle, [&] { BOOST_TEST((step() == (in_place ? Error::Ok : Error::InvalidArgument))); });
    if (!in_place) {
      const std::string text = take_last_error();
      BOOST_TEST(
          text.find("got buffer 'kv', which lies at two addresses in turn, allowed one address") != std::string::npos,
          text);
    }
    graph.launch(stream.handle);
    float floats[2];
    BOOST_TEST((state.read("kv", floats, sizeof(floats)) == Error::Ok));
    BOOST_TEST(floats[0] == (in_place ? 2.0f : 1.0f));
  }
}

BOOST_AUTO_TEST_SUITE_END()
