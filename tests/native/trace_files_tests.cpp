#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "core/profiling_settings.h"
#include "core/trace_files.h"

using namespace executorch_tensorrt;
namespace json = boost::json;

namespace {

CallRecord call(std::uint64_t number, std::size_t profile, LayerRecords layers) {
  CallRecord record;
  record.number = number;
  record.profile = profile;
  record.request = "auto";
  record.phases = {{"torchtrt.enqueue_host", 2000, 8000}, {"torchtrt.delegate", 1000, 9000}};
  record.layers = std::move(layers);
  return record;
}

EngineTrace trace_of(std::vector<CallRecord> calls) {
  EngineTrace trace;
  trace.method = "forward";
  trace.engine_id = "0123456789ab";
  trace.engine_kind = "cpu";
  trace.process_id = 42;
  trace.calls = std::move(calls);
  return trace;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trace_files)

BOOST_AUTO_TEST_CASE(perfetto_has_a_slice_per_phase_and_layer_and_tracks_by_clock) {
  const EngineTrace trace =
      trace_of({call(0, 1, {{"conv", 2000, 5000, Clock::kHost, 0}, {"gemm", 5000, 7000, Clock::kDevice, 1}})});
  const json::value document = json::parse(perfetto_json(trace));
  const json::array& events = document.at("traceEvents").as_array();
  std::map<std::string, int> tracks;
  std::map<std::string, std::string> clocks;
  std::size_t names = 0;
  for (const json::value& event : events) {
    if (event.at("ph").as_string() == "M") {
      ++names;
      continue;
    }
    BOOST_TEST(event.at("pid").as_int64() == 42);
    BOOST_TEST(event.at("args").at("profile").as_int64() == 1);
    tracks[std::string(event.at("name").as_string())] = static_cast<int>(event.at("tid").as_int64());
    if (const json::value* clock = event.at("args").as_object().if_contains("clock")) {
      clocks[std::string(event.at("name").as_string())] = std::string(clock->as_string());
    }
    if (event.at("name").as_string() == "conv") {
      BOOST_TEST(json::value_to<double>(event.at("ts")) == 2.0);
      BOOST_TEST(json::value_to<double>(event.at("dur")) == 3.0);
    }
  }
  BOOST_TEST(names == 4u);
  BOOST_TEST(tracks.size() == 4u);
  BOOST_TEST(tracks["torchtrt.delegate"] == tracks["torchtrt.enqueue_host"]);
  BOOST_TEST(tracks["conv"] != tracks["gemm"]);
  BOOST_TEST(tracks["conv"] != tracks["torchtrt.delegate"]);
  BOOST_TEST((clocks == std::map<std::string, std::string>{{"conv", "host"}, {"gemm", "device"}}));
  BOOST_TEST(json::serialize(document.at("otherData")) ==
             R"({"method":"forward","engine_id":"0123456789ab","engine_kind":"cpu","calls_dropped":0})");
}

BOOST_AUTO_TEST_CASE(perfetto_says_of_a_whole_call_what_the_device_took_and_whether_it_returned_early) {
  CallRecord waited = call(0, 1, {});
  waited.device_ns = 4500;
  CallRecord early = call(1, 1, {});
  early.returned_early = true;
  const json::array events = json::parse(perfetto_json(trace_of({waited, early}))).at("traceEvents").as_array();
  std::vector<std::string> args;
  for (const json::value& event : events) {
    if (event.at("ph").as_string() == "X") {
      args.push_back(json::serialize(event.at("args")));
    }
  }
  const std::string first = R"({"call":0,"profile":1,"request":"auto")",
                    second = R"({"call":1,"profile":1,"request":"auto")";
  const std::vector<std::string> expected{first + "}", first + R"(,"device_ns":4500})", second + "}",
                                          second + R"(,"returned_early":true})"};
  BOOST_TEST(args == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(trex_sums_a_layer_over_its_calls_and_keeps_profiles_apart) {
  const EngineTrace trace = trace_of({call(0, 0, {{"conv", 0, 1'000'000, Clock::kHost, 0}}),
                                      call(1, 0, {{"conv", 0, 3'000'000, Clock::kHost, 0}}),
                                      call(2, 1, {{"conv", 0, 4'000'000, Clock::kHost, 0}})});
  const json::array records = json::parse(trex_json(trace)).as_array();
  BOOST_TEST_REQUIRE(records.size() == 3u);
  BOOST_TEST(records[0].at("count").as_int64() == 3);
  BOOST_TEST(records[1].at("name").as_string() == "conv");
  BOOST_TEST(json::value_to<double>(records[1].at("timeMs")) == 4.0);
  BOOST_TEST(json::value_to<double>(records[1].at("averageMs")) == 2.0);
  BOOST_TEST(json::value_to<double>(records[1].at("medianMs")) == 2.0);
  BOOST_TEST(json::value_to<double>(records[1].at("percentage")) == 50.0);
  BOOST_TEST(records[2].at("name").as_string() == "conv [profile 1]");
}

BOOST_AUTO_TEST_CASE(hostile_names_stay_strict_json) {
  for (const std::string& name :
       {std::string("\"</script>\\"), std::string("a\nb\tc\x01"), std::string("caf\xc3\xa9"),
        std::string("\xff\xfe\xc3"), std::string("nul\0inside", 10), std::string(10'000, 'x')}) {
    const EngineTrace trace = trace_of({call(0, 0, {{name, 5, 4, Clock::kHost, 0}})});
    for (const std::string& text : {perfetto_json(trace), trex_json(trace)}) {
      boost::system::error_code error;
      (void)json::parse(text, error);
      BOOST_TEST(!error);
      BOOST_TEST(text.find("nan") == std::string::npos);
      BOOST_TEST(text.find("inf") == std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_empty_trace_is_valid) {
  BOOST_TEST(json::parse(trex_json(trace_of({}))).as_array().size() == 1u);
  BOOST_TEST(json::parse(perfetto_json(trace_of({}))).at("traceEvents").is_array());
}

BOOST_AUTO_TEST_CASE(file_names_are_safe) {
  BOOST_TEST(safe_file_name("../a b/%n") == "___a_b__n");
  BOOST_TEST(safe_file_name("") == "_");
  BOOST_TEST(safe_file_name(std::string(500, 'x')).size() == 80u);
}

BOOST_AUTO_TEST_CASE(settings_refuse_other_words) {
  ProfileLevel level = ProfileLevel::kOff;
  ProfileFormat format = ProfileFormat::kEtdump;
  std::string path;
  BOOST_TEST(parse_level("layers", level).ok());
  BOOST_TEST((level == ProfileLevel::kLayers));
  BOOST_TEST(!parse_level("Layers", level).ok());
  BOOST_TEST(!parse_format("", format).ok());
  BOOST_TEST(!parse_path_prefix("", path).ok());
}

BOOST_AUTO_TEST_CASE(sidecars_need_a_folder_that_can_be_written) {
  ProfilingSettings settings{ProfileLevel::kLayers, ProfileFormat::kPerfetto, ""};
  BOOST_TEST(check_settings(settings).message().find("give 'torchtrt_profile_path_prefix' a folder") !=
             std::string::npos);
  settings.path_prefix = "/no/such/folder";
  BOOST_TEST(!check_settings(settings).ok());
  settings.path_prefix = "/dev/null";
  BOOST_TEST(check_settings(settings).message().find("it is a file") != std::string::npos);
  settings.level = ProfileLevel::kOff;
  BOOST_TEST(check_settings(settings).ok());
}

BOOST_AUTO_TEST_SUITE_END()
