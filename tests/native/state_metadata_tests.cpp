// What a blob may say of aliased outputs and of buffers that the engine owns.
#include <boost/test/unit_test.hpp>
#include <string>

#include "core/metadata.h"

using namespace executorch_tensorrt;

namespace {

// x, a, b -> y, a_out, b_out, with these parts of the JSON.
Result<EngineMetadata> parse(const std::string& aliases, const std::string& record) {
  std::string bindings;
  for (const char* name : {"x", "a", "b"}) {
    bindings += std::string(R"({"name":")") + name + R"(","dtype":"float32","is_input":true},)";
  }
  for (const char* name : {"y", "a_out", "b_out"}) {
    bindings += std::string(R"({"name":")") + name + R"(","dtype":"float32","is_input":false},)";
  }
  bindings.pop_back();
  return parse_metadata(R"({"io_bindings":[)" + bindings + R"(],"aliased_io":[)" + aliases +
                        R"(],"executorch_tensorrt":{"version":1,)" + record + "}}");
}

const std::string kAliases = R"({"output":"a_out","input":"a"},{"output":"b_out","input":"b"})";
const std::string kArguments = R"("arguments":{"inputs":[0,null,null],"outputs":[1,null,null]})";
const std::string kA = R"({"name":"A","input":"a"})";
const std::string kB = R"({"name":"B","input":"b","initial":"00ff"})";

std::string profiles(const std::string& min = "[1]", const std::string& max = "[1]") {
  const std::string fixed = R"({"min":[1],"opt":[1],"max":[1]})";
  return R"("profiles":[{"inputs":[)" + fixed + R"(,{"min":)" + min + R"(,"opt":)" + min + R"(,"max":)" + max + "}," +
         fixed + "]}]";
}

std::string state(const std::string& entries) { return R"("state":[)" + entries + "]"; }

void refuses(const Result<EngineMetadata>& metadata, const std::string& message) {
  BOOST_TEST_REQUIRE(!metadata.ok());
  BOOST_TEST(metadata.status().message().find("engine metadata is damaged: " + message) == 0u,
             metadata.status().message());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(state_metadata)

BOOST_AUTO_TEST_CASE(owned_buffers_are_read) {
  const auto metadata = parse(kAliases, profiles() + "," + kArguments + "," + state(kA + "," + kB));
  BOOST_TEST_REQUIRE(metadata.ok());
  BOOST_TEST(metadata->num_arguments == 2u);
  const auto& owned = metadata->record->state;
  BOOST_TEST(owned.size() == 2u);
  BOOST_TEST(owned[1].name == "B");
  BOOST_TEST(owned[1].input == 2u);
  BOOST_TEST(owned[1].initial == std::string("\0\xff", 2));
}

BOOST_AUTO_TEST_CASE(a_state_that_contradicts_the_bindings_is_refused) {
  const auto with = [](const std::string& entries) {
    return parse(kAliases, profiles() + "," + kArguments + "," + state(entries));
  };
  const std::pair<std::string, const char*> faults[] = {
      {kA, "input 'b' is neither an argument nor the engine's own"},
      {"", "input 'a' is neither an argument nor the engine's own"},
      {kA + "," + kA, "buffer 'A' occurs twice"},
      {kA + R"(,{"name":"A","input":"b"})", "buffer 'A' occurs twice"},
      {kA + R"(,{"name":"B","input":"a"})", "buffer 'B' occurs twice"},
      {kA + R"(,{"name":"B","input":"x"})", "buffer 'B' is no input of the engine's own"},
      {kA + R"(,{"name":"B","input":"a_out"})", "buffer 'B' is no input of the engine's own"},
      {kA + R"(,{"name":"B","input":"nothing"})", "buffer 'B' is no input of the engine's own"},
      {kA + R"(,{"name":"B","input":"b","initial":"0"})", ""},
      {kA + R"(,{"name":"B","input":"b","initial":"zz"})", ""},
      {kA + R"(,{"name":"B","input":"b","initial":"0 "})", ""},
      {kA + R"(,{"name":"B","input":"b","initial":7})", ""},
      {kA + R"(,{"name":"B"})", ""},
      {kA + R"(,7)", ""},
  };
  for (const auto& [entries, message] : faults) {
    BOOST_TEST_CONTEXT(entries) { refuses(with(entries), message); }
  }
  refuses(parse(kAliases, profiles() + "," + state(kA)), "buffer 'A' is no input of the engine's own");
}

BOOST_AUTO_TEST_CASE(an_owned_buffer_that_is_not_written_in_place_has_an_output_of_its_own) {
  const std::string kElsewhere = R"({"name":"A","input":"a","output":"a_out"})";
  const std::string kAliasOfB = R"({"output":"b_out","input":"b"})";
  const auto with = [](const std::string& aliases, const std::string& entries) {
    return parse(aliases, profiles() + "," + kArguments + "," + state(entries));
  };
  const auto metadata = with(kAliasOfB, kElsewhere + "," + kB);
  BOOST_TEST_REQUIRE(metadata.ok());
  BOOST_TEST((metadata->record->state[0].output == std::optional<std::size_t>(1)));
  BOOST_TEST(!metadata->record->state[1].output.has_value());
  refuses(with(kAliases, kElsewhere + "," + kB), "buffer 'A' has no output of its own");
  for (const char* output : {"nothing", "a", "y", "b_out"}) {
    const std::string entry = std::string(R"({"name":"A","input":"a","output":")") + output + R"("})";
    refuses(with(kAliasOfB, entry + "," + kB), "buffer 'A' has no output of its own");
  }
  refuses(with("", kElsewhere + R"(,{"name":"B","input":"b","output":"a_out"})"),
          "buffer 'B' has no output of its own");
  refuses(with(kAliasOfB, kElsewhere + R"(,{"name":"B","input":"b","output":"b_out"})"),
          "buffer 'B' has no output of its own");
  refuses(with(R"({"output":"b_out","input":"a"})", kElsewhere + "," + kB),
          "buffer 'A' has an output, and is written in place as well");
}

BOOST_AUTO_TEST_CASE(a_state_whose_shape_varies_is_refused) {
  const std::string record = kArguments + "," + state(kA + "," + kB);
  refuses(parse(kAliases, record), "buffer 'A' has no fixed shape");
  refuses(parse(kAliases, profiles("[1]", "[2]") + "," + record), "buffer 'A' has no fixed shape");
  const std::string one = R"({"inputs":[{"min":[1],"opt":[1],"max":[1]},{"min":[1],"opt":[1],"max":[1]},)";
  const std::string other = R"({"inputs":[{"min":[1],"opt":[1],"max":[1]},{"min":[2],"opt":[2],"max":[2]},)";
  const std::string last = R"({"min":[1],"opt":[1],"max":[1]}]})";
  refuses(parse(kAliases, R"("profiles":[)" + one + last + "," + other + last + "]," + record),
          "buffer 'A' has no fixed shape");
}

BOOST_AUTO_TEST_CASE(memory_that_is_written_in_place_serves_no_other_input) {
  const auto with = [](const std::string& inputs) {
    return parse(R"({"output":"a_out","input":"a"})",
                 R"("arguments":{"inputs":)" + inputs + R"(,"outputs":[2,3,null]})");
  };
  BOOST_TEST(with("[0,1,0]").ok());
  refuses(with("[0,1,1]"), "output 'a_out' is written in place of input 'a', whose argument is input 'b' as well");
  refuses(with("[0,0,1]"), "output 'a_out' is written in place of input 'a', whose argument is input 'x' as well");
}

BOOST_AUTO_TEST_CASE(more_bindings_than_an_engine_has_are_refused) {
  std::string bindings = R"({"name":"y","is_input":false})";
  for (int k = 0; k < 4096; ++k) {
    bindings += R"(,{"name":"x)" + std::to_string(k) + R"(","is_input":true})";
  }
  refuses(parse_metadata(R"({"io_bindings":[)" + bindings + "]}"), "4097 bindings, allowed at most 4096");
}

BOOST_AUTO_TEST_SUITE_END()
