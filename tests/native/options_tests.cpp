#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "delegate/options.h"

using namespace executorch_tensorrt;
using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;

namespace {

BackendOption option(const char* key, executorch::runtime::OptionValue value) {
  BackendOption made;
  std::strncpy(made.key, key, sizeof(made.key) - 1);
  made.value = std::move(value);
  return made;
}

BackendOption text_option(const char* key, const std::string& text) {
  std::array<char, executorch::runtime::kMaxOptionValueLength> value{};
  std::memcpy(value.data(), text.data(), std::min(text.size(), value.size()));
  return option(key, value);
}

Result<DelegateOptions> resolve(const std::vector<BackendOption>& options, std::vector<CompileSpec> specs = {}) {
  return resolve_options({options.data(), options.size()}, {specs.data(), specs.size()});
}

CompileSpec spec(const char* key, std::string& value) { return {key, {value.data(), value.size()}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

BOOST_AUTO_TEST_CASE(nothing_given_is_profile_0_and_off) {
  const auto options = resolve({});
  BOOST_TEST_REQUIRE(options.ok());
  BOOST_TEST((options->default_request == Request{}));
  BOOST_TEST((options->profiling.level == ProfileLevel::kOff));
}

BOOST_AUTO_TEST_CASE(load_time_options_override_compile_specs) {
  std::string phases = "phases";
  const std::vector<CompileSpec> specs{spec(kProfileLevelKey, phases)};
  BOOST_TEST((resolve({}, specs)->profiling.level == ProfileLevel::kPhases));
  BOOST_TEST((resolve({text_option(kProfileLevelKey, "off")}, specs)->profiling.level == ProfileLevel::kOff));
}

BOOST_AUTO_TEST_CASE(a_program_may_not_say_where_files_are_written) {
  std::string layers = "layers";
  std::string trex = "trex";
  std::string folder = "/tmp";
  const std::vector<CompileSpec> specs{spec(kProfileLevelKey, layers), spec(kProfileFormatKey, trex),
                                       spec(kProfilePathKey, folder)};
  const auto alone = resolve({}, specs);
  BOOST_TEST_REQUIRE(alone.ok());
  BOOST_TEST(alone->profiling.path_prefix.empty());
  BOOST_TEST((alone->profiling.format == ProfileFormat::kEtdump));
  BOOST_TEST(alone->ignored.find("got 'trex', which writes files") != std::string::npos, alone->ignored);

  const auto given = resolve({text_option(kProfilePathKey, "/")}, specs);
  BOOST_TEST_REQUIRE(given.ok());
  BOOST_TEST(given->profiling.path_prefix == "/");
  BOOST_TEST((given->profiling.format == ProfileFormat::kTrex));
  BOOST_TEST(given->ignored.find("got '/tmp', allowed where a program is loaded") != std::string::npos, given->ignored);

  BOOST_TEST(!resolve({text_option(kProfileFormatKey, "trex")}, specs).ok());
}

BOOST_AUTO_TEST_CASE(compile_specs_of_others_are_passed_over) {
  std::string device = "cuda:0";
  BOOST_TEST(resolve({}, {spec("target_device", device)}).ok());
}

BOOST_AUTO_TEST_CASE(wrong_values_and_types_say_what_is_allowed) {
  const std::pair<BackendOption, const char*> cases[] = {
      {text_option(kProfileLevelKey, "verbose"), "got 'verbose', allowed 'off', 'delegate', 'phases', 'layers'"},
      {text_option(kProfileLevelKey, ""), "got '', allowed 'off'"},
      {option(kProfileLevelKey, 2), "got 2, allowed a string"},
      {option(kProfileLevelKey, true), "got true, allowed a string"},
      {text_option(kProfileFormatKey, "json"), "got 'json', allowed 'etdump', 'perfetto', 'trex'"},
      {text_option(kProfilePathKey, ""), "allowed a folder that exists"},
      {option(kOptimizationProfileKey, -1), "got -1, allowed 'auto' or an index of 0 or more"},
      {option(kOptimizationProfileKey, true), "got true, allowed 'auto'"},
      {text_option(kOptimizationProfileKey, "first"), "got 'first', allowed 'auto'"},
      {option("torchtrt_profile", 1), "load option 'torchtrt_profile' is unknown, allowed 'optimization_profile'"},
  };
  for (const auto& [given, message] : cases) {
    const auto options = resolve({given});
    BOOST_TEST_REQUIRE(!options.ok());
    BOOST_TEST(options.status().message().find(message) != std::string::npos, options.status().message());
  }
}

BOOST_AUTO_TEST_CASE(graphs_are_a_load_time_option_or_a_compile_spec) {
  std::string yes = "true";
  std::string no = "0";
  std::string maybe = "maybe";
  BOOST_TEST(!resolve({})->use_cuda_graphs);
  BOOST_TEST(resolve({option(kCudaGraphsKey, true)})->use_cuda_graphs);
  BOOST_TEST(resolve({}, {spec(kCudaGraphsKey, yes)})->use_cuda_graphs);
  BOOST_TEST(!resolve({}, {spec(kCudaGraphsKey, no)})->use_cuda_graphs);
  BOOST_TEST(!resolve({option(kCudaGraphsKey, false)}, {spec(kCudaGraphsKey, yes)})->use_cuda_graphs);
  BOOST_TEST(resolve({option(kCudaGraphsKey, 1)}).status().message() ==
             "option 'use_cuda_graphs': got 1, allowed true or false");
  BOOST_TEST(resolve({}, {spec(kCudaGraphsKey, maybe)}).status().message() ==
             "option 'use_cuda_graphs': got 'maybe', allowed 'true' or 'false'");
  BOOST_TEST(!resolve({}, {spec(kCudaGraphsKey, yes), spec(kCudaGraphsKey, yes)}).ok());
}

BOOST_AUTO_TEST_CASE(a_key_given_twice_is_an_error) {
  const BackendOption level = text_option(kProfileLevelKey, "phases");
  BOOST_TEST(resolve({level, level}).status().message() == "option 'torchtrt_profile_level' is given twice");
  std::string phases = "phases";
  BOOST_TEST(!resolve({}, {spec(kProfileLevelKey, phases), spec(kProfileLevelKey, phases)}).ok());
}

BOOST_AUTO_TEST_CASE(text_without_its_nul_is_read_to_its_end) {
  const BackendOption full =
      text_option(kProfileLevelKey, std::string(executorch::runtime::kMaxOptionValueLength, 'x'));
  BOOST_TEST(!resolve({full}).ok());
}

BOOST_AUTO_TEST_SUITE_END()
