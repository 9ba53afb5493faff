// Programs and blobs that Torch-TensorRT wrote, as they are: only the engine knows its profiles, and a fake one stands
// for it, because a real one needs a GPU.
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "core/event_names.h"
#include "delegate/backend.h"
#include "delegate/engine_handle.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "fake_cuda.h"
#include "fake_engine.h"
#include "process/thread_request.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::BackendOptions;
using executorch::runtime::Error;
using executorch::runtime::EValue;

namespace {

const std::string kData = ETRT_TEST_DATA;

std::string read_file(const std::string& name) {
  std::ifstream file(kData + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ProfileTable table(const std::string& input, std::vector<InputRanges> profiles) {
  std::vector<ProfileRanges> ranges;
  for (InputRanges& profile : profiles) {
    ranges.push_back({std::move(profile)});
  }
  return *ProfileTable::create({input}, std::move(ranges));
}

// The profiles of the plan in the file: x [1, S, 64] with S = 1 and S = 1..256.
ProfileTable two_profiles() {
  return table("x", {{{1, 1, 1}, {1, 1, 1}, {64, 64, 64}}, {{1, 1, 1}, {1, 64, 256}, {64, 64, 64}}});
}

// What reaches a tracer.
class Events final : public executorch::etdump::ETDumpGen {
 public:
  ~Events() override {
    if (!names.empty()) {
      std::free(get_etdump_data().buf);
    }
  }
  executorch::runtime::EventTracerEntry start_profiling_delegate(
      const char* name, executorch::runtime::DelegateDebugIntId index) override {
    names.emplace_back(name);
    return ETDumpGen::start_profiling_delegate(name, index);
  }
  std::vector<std::string> names;
};

struct Program {
  explicit Program(const char* level = "off") { BOOST_TEST((load(level) == Error::Ok)); }
  ~Program() { register_engine_runtime("tensorrt_rtx", nullptr); }

  Error load(const char* level) {
    fake_log() = {};
    fake_log().device = FakeCuda::device();
    register_fake_engine("tensorrt_rtx", {two_profiles(), {ScalarType::kFloat32, ScalarType::kFloat32}});
    auto tracer = std::make_unique<Events>();
    events = tracer.get();
    module.emplace(kData + "/torch_tensorrt_2.14_two_profiles.pte", executorch::extension::Module::LoadMode::File,
                   std::move(tracer));
    BackendOptions<1> options;
    BOOST_TEST((options.set_option("torchtrt_profile_level", level) == Error::Ok));
    executorch::runtime::LoadBackendOptionsMap map;
    BOOST_TEST((map.set_options(kBackendId, options.view()) == Error::Ok));
    return module->load_method("forward", nullptr, nullptr, &map);
  }

  // The message, or "" if the output is the input, which is what the fake engine computes.
  std::string run(int length) {
    std::vector<float> x(static_cast<std::size_t>(length) * 64);
    std::iota(x.begin(), x.end(), static_cast<float>(length));
    const auto input = executorch::extension::from_blob(x.data(), {1, length, 64});
    SelectionCollector collector;
    const auto result = module->forward(EValue(*input));
    selections = collector.take();
    if (!result.ok()) {
      return take_last_error();
    }
    const auto output = result->at(0).toTensor();
    BOOST_TEST(output.size(1) == length);
    return std::equal(x.begin(), x.end(), output.const_data_ptr<float>()) ? "" : "another output";
  }

  FakeCuda cuda;
  Events* events = nullptr;
  std::optional<executorch::extension::Module> module;
  std::vector<Selection> selections;
};

std::string load_message(const std::string& blob) {
  auto handle = EngineHandle::create("forward", blob.data(), blob.size(), {});
  return handle.ok() ? "" : handle.status().message();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(torch_tensorrt)

BOOST_AUTO_TEST_CASE(a_program_runs_with_every_request) {
  Program program;
  BOOST_TEST(program.run(1) == "");
  BOOST_TEST(program.selections.at(0).profile == 0u);
  {
    const OptimizationProfileGuard guard(1);
    BOOST_TEST(program.run(1) == "");
    BOOST_TEST(program.selections.at(0).profile == 1u);
    BOOST_TEST(program.run(256) == "");
  }
  const auto guard = OptimizationProfileGuard::automatic();
  BOOST_TEST(program.run(7) == "");
  BOOST_TEST(program.selections.at(0).profile == 1u);
  BOOST_TEST(program.run(1) == "");
  BOOST_TEST(program.selections.at(0).profile == 0u);
  BOOST_TEST(fake_log().contexts == 2);
}

BOOST_AUTO_TEST_CASE(what_no_profile_takes_is_refused_with_the_engines_ranges) {
  Program program;
  const std::string message = program.run(7);
  BOOST_TEST(contains(message, "input 'x' dim 1: got 7, allowed 1..1 in profile 0"), message);
  BOOST_TEST(contains(message, "profile 1 accepts 'x' (1, 1..256, 64)"), message);
  BOOST_TEST(contains(message, "use OptimizationProfileGuard(1)"), message);
  const OptimizationProfileGuard guard(2);
  BOOST_TEST(contains(program.run(1), "optimization profile index: got 2, allowed 0..1"));
  BOOST_TEST(fake_log().enqueue == 0);
}

BOOST_AUTO_TEST_CASE(memory_on_the_device_reaches_the_engine) {
  Program program;
  BOOST_TEST(program.run(1) == "");
  FakeCuda::take_log();
  BOOST_TEST(program.run(1) == "");
  // The program's own copies at its border, and none of the delegate.
  BOOST_TEST(FakeCuda::take_log() == (std::vector<std::string>{
                                         "GetDevice", "MemcpyAsync H2D 256 per-thread", "StreamSynchronize per-thread",
                                         "GetDevice", "work per-thread", "StreamSynchronize per-thread", "GetDevice",
                                         "MemcpyAsync D2H 256 per-thread", "StreamSynchronize per-thread"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_device_without_memory_for_the_program_is_an_error_and_takes_it_later) {
  const int allocations_before = fake_cuda_allocations();
  Program program;
  program.module.reset();
  fake_cuda_set_free_memory(0);
  BOOST_TEST((program.load("off") == Error::MemoryAllocationFailed));
  BOOST_TEST(fake_cuda_allocations() == allocations_before);
  fake_cuda_set_free_memory(1 << 20);
  BOOST_TEST((program.load("off") == Error::Ok));
  BOOST_TEST(program.run(1) == "");
}

BOOST_AUTO_TEST_CASE(phases_are_traced) {
  Program program("phases");
  BOOST_TEST(program.run(1) == "");
  const std::vector<std::string> names(std::begin(kEventNames), std::end(kEventNames));
  BOOST_TEST(program.events->names == names, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_a_runtime_both_kinds_are_named) {
  const std::string message = load_message(read_file("tr01_odd_names.blob"));
  BOOST_TEST(contains(message, "engine kind 'tensorrt' or 'tensorrt_rtx' has no runtime on this machine"), message);
}

BOOST_AUTO_TEST_CASE(the_runtime_that_accepts_the_engine_loads_it) {
  const std::string blob = fake_blob(R"({"io_bindings":[{"name":"x","is_input":true},{"name":"y","is_input":false}]})");
  register_engine_runtime("tensorrt", [](const EngineSource&) -> Result<std::unique_ptr<Engine>> {
    return invalid_program("no plan of mine");
  });
  BOOST_TEST(load_message(blob) == "no runtime on this machine accepts the engine: 'tensorrt': no plan of mine");
  register_fake_engine("tensorrt_rtx", {table("x", {{{1, 1, 4}}}), {}});
  BOOST_TEST(load_message(blob) == "");
  register_engine_runtime("tensorrt", nullptr);
  register_engine_runtime("tensorrt_rtx", nullptr);
}

BOOST_AUTO_TEST_CASE(element_types_come_from_the_engine_where_the_blob_has_none) {
  const std::string blob = fake_blob(R"({"io_bindings":[{"name":"x","is_input":true},{"name":"y","is_input":false}]})");
  register_fake_engine("tensorrt", {table("x", {{{1, 1, 4}}}), {ScalarType::kInt64, ScalarType::kInt64}});
  auto handle = EngineHandle::create("forward", blob.data(), blob.size(), {});
  register_engine_runtime("tensorrt", nullptr);
  BOOST_TEST_REQUIRE(handle.ok());
  std::vector<float> data(4);
  const auto tensor = executorch::extension::from_blob(data.data(), {4});
  EValue value(*tensor);
  EValue* args[] = {&value, &value};
  BOOST_TEST((*handle)->execute({args, 2}, nullptr).message() == "input 'x': got dtype float32, allowed int64");
}

BOOST_AUTO_TEST_CASE(an_engine_that_contradicts_its_blob_is_refused) {
  const auto load_with = [](Reported reported) {
    register_fake_engine("fake", std::move(reported));
    return load_message(fake_blob());
  };
  BOOST_TEST(
      load_with({table("x", {{{1, 2, 4}, {2, 2, 2}}, {{2, 8, 16}, {2, 2, 2}}}), {}}) ==
      "input 'x' in profile 1: the engine takes (2..16, 2), declared is (3..16, 2); declare the profiles that it "
      "was built with");
  BOOST_TEST(contains(load_with({table("x", {{{1, 2, 4}, {2, 2, 2}}}), {}}),
                      "the engine has 1 optimization profiles, declared are 2"));
  BOOST_TEST(load_with({std::nullopt, {ScalarType::kFloat32, ScalarType::kFloat16}}) ==
             "binding 'y': the engine reports dtype float16, the program has float32");
  BOOST_TEST(load_with({*ProfileTable::create({}, {{}}), {}}) == "the engine reports 0 inputs, the blob names 1");
}

// FP8, int4 and the like: no one knows how much memory such an output takes.
BOOST_AUTO_TEST_CASE(an_output_of_unknown_size_that_is_no_argument_is_refused_on_a_device) {
  const FakeCuda cuda;
  const auto load_with = [](const char* dtype, const char* arguments, ScalarType reported) {
    fake_log() = {};
    fake_log().device = FakeCuda::device();
    register_fake_engine("fake", {std::nullopt, {ScalarType::kFloat32, reported}});
    return load_message(fake_blob(
        R"({"io_bindings":[{"name":"x","dtype":"float32","is_input":true},{"name":"y","dtype":")" + std::string(dtype) +
        R"(","is_input":false}],"executorch_tensorrt":{"version":1,)" +
        R"("engine_kind":"fake","profiles":[{"inputs":[{"min":[1],"opt":[2],"max":[4]}]}])" + arguments + "}}"));
  };
  const char* const hidden = R"(,"arguments":{"inputs":[0],"outputs":[null]})";
  BOOST_TEST(contains(load_with("", hidden, ScalarType::kUnknown), "output 'y' is no argument of the program, and"));
  BOOST_TEST(load_with("", hidden, ScalarType::kFloat16) == "");
  BOOST_TEST(load_with("float32", hidden, ScalarType::kUnknown) == "");
  BOOST_TEST(load_with("", "", ScalarType::kUnknown) == "");
  fake_log() = {};
}

BOOST_AUTO_TEST_SUITE_END()
