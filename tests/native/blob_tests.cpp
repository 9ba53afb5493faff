#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/metadata.h"

using namespace executorch_tensorrt;

namespace {

// A blob by its documented layout, written without the code under test.
std::string make_blob(const std::string& magic, const std::string& metadata, const std::string& engine) {
  const auto metadata_size = static_cast<std::uint32_t>(metadata.size());
  const std::uint32_t engine_offset = (32 + metadata_size + 15) / 16 * 16;
  const std::uint32_t metadata_offset = 32;
  const std::uint64_t engine_size = engine.size();
  std::string blob(engine_offset, '\0');
  std::memcpy(blob.data(), magic.data(), 4);
  std::memcpy(blob.data() + 4, &metadata_offset, 4);
  std::memcpy(blob.data() + 8, &metadata_size, 4);
  std::memcpy(blob.data() + 12, &engine_offset, 4);
  std::memcpy(blob.data() + 16, &engine_size, 8);
  blob[24] = 1;
  std::memcpy(blob.data() + 32, metadata.data(), metadata.size());
  return blob + engine;
}

template <typename T>
std::string with_field(std::string blob, std::size_t offset, T value) {
  std::memcpy(blob.data() + offset, &value, sizeof(value));
  return blob;
}

bool parses(const std::string& blob) { return parse_blob(blob.data(), blob.size()).ok(); }

const std::string kMetadata =
    R"({"io_bindings":[{"name":"x","is_input":true},{"name":"y","dtype":"int64","is_input":false}]})";

}  // namespace

BOOST_AUTO_TEST_SUITE(blob)

BOOST_AUTO_TEST_CASE(a_blob_at_any_address_is_read) {
  const std::string bytes = make_blob("TR01", kMetadata, "engine");
  for (const std::size_t shift : {0, 1, 4, 8}) {
    const std::string moved = std::string(shift, '#') + bytes;
    const auto view = parse_blob(moved.data() + shift, bytes.size());
    BOOST_TEST_REQUIRE(view.ok());
    BOOST_TEST((view->format == BlobFormat::kTensorRT));
    BOOST_TEST(view->metadata == kMetadata);
    BOOST_TEST(std::string(reinterpret_cast<const char*>(view->engine), view->engine_size) == "engine");
  }
}

BOOST_AUTO_TEST_CASE(every_magic_is_told_apart) {
  for (const auto& [magic, format] :
       {std::pair{"TR01", BlobFormat::kTensorRT}, {"TR02", BlobFormat::kTensorRTAliased}, {"ETC1", BlobFormat::kCpu}}) {
    const std::string bytes = make_blob(magic, kMetadata, "engine");
    BOOST_TEST((parse_blob(bytes.data(), bytes.size())->format == format));
  }
  BOOST_TEST(!parses(make_blob("TR03", kMetadata, "engine")));
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  const std::string bytes = make_blob("TR01", kMetadata, "engine");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    BOOST_TEST(!parses(bytes.substr(0, size)));
  }
}

BOOST_AUTO_TEST_CASE(offsets_and_sizes_that_wrap_around_are_refused) {
  const std::string bytes = make_blob("TR01", kMetadata, "engine");
  BOOST_TEST(!parses(with_field(bytes, 16, UINT64_MAX)));
  BOOST_TEST(!parses(with_field(bytes, 16, UINT64_MAX - 15)));
  BOOST_TEST(!parses(with_field<std::uint64_t>(bytes, 16, 0)));
  BOOST_TEST(!parses(with_field<std::uint32_t>(bytes, 12, UINT32_MAX - 15)));
  BOOST_TEST(!parses(with_field<std::uint32_t>(bytes, 12, 17)));
  BOOST_TEST(!parses(with_field<std::uint32_t>(bytes, 4, UINT32_MAX)));
  BOOST_TEST(!parses(with_field<std::uint32_t>(bytes, 4, 0)));
  BOOST_TEST(!parses(with_field<std::uint32_t>(bytes, 8, UINT32_MAX)));
}

BOOST_AUTO_TEST_CASE(metadata_keeps_binding_order_and_unknown_dtypes) {
  const auto metadata = parse_metadata(kMetadata);
  BOOST_TEST_REQUIRE(metadata.ok());
  BOOST_TEST(metadata->inputs[0].name == "x");
  BOOST_TEST((metadata->inputs[0].dtype == ScalarType::kUnknown));
  BOOST_TEST((metadata->outputs[0].dtype == ScalarType::kInt64));
  BOOST_TEST(!metadata->record.has_value());
}

BOOST_AUTO_TEST_CASE(damaged_metadata_is_refused_with_the_reason) {
  for (const char* text : {
           R"()",
           R"([])",
           R"({"io_bindings":[]})",
           R"({"io_bindings":[{"name":"","is_input":false}]})",
           R"({"io_bindings":[{"name":"x","is_input":true},{"name":"x","is_input":false}]})",
           R"({"io_bindings":[{"name":"x","dtype":"float31","is_input":false}]})",
           R"({"io_bindings":[{"name":"x","is_input":1}]})",
           R"({"io_bindings":[{"name":"y","is_input":false}],"executorch_tensorrt":{}})",
           R"({"io_bindings":[{"name":"y","is_input":false}],"executorch_tensorrt":{"version":2}})",
           R"({"io_bindings":[{"name":"y","is_input":false}],"executorch_tensorrt":{"version":1,"shapes":{}}})",
       }) {
    const auto metadata = parse_metadata(text);
    BOOST_TEST_REQUIRE(!metadata.ok());
    BOOST_TEST(metadata.status().message().find("engine metadata is damaged: ") == 0u);
  }
}

BOOST_AUTO_TEST_CASE(aliases_are_of_an_output_and_an_input_of_its_own) {
  const auto with_aliases = [](const std::string& aliases) {
    return parse_metadata(R"({"io_bindings":[{"name":"x","is_input":true},{"name":"k","is_input":true},)"
                          R"({"name":"y","is_input":false},{"name":"z","is_input":false}],"aliased_io":[)" +
                          aliases + "]}");
  };
  const auto both = with_aliases(R"({"output":"y","input":"k"},{"output":"z","input":"x","kind":"user"})");
  BOOST_TEST_REQUIRE(both.ok());
  BOOST_TEST(both->aliased_io[0].kind == "kv_cache_update");
  const std::pair<const char*, const char*> faults[] = {
      {R"({"output":"y","input":"w"})", "output 'y' aliases input 'w': the engine has no such input"},
      {R"({"output":"w","input":"x"})", "output 'w' aliases input 'x': the engine has no such output"},
      {R"({"output":"y","input":"z"})", "output 'y' aliases input 'z': that is an output"},
      {R"({"output":"y","input":"x"},{"output":"z","input":"x"})", "output 'z' aliases input 'x': output 'y' does so"},
      {R"({"output":"y","input":"x"},{"output":"y","input":"k"})", "output 'y' aliases input 'k': it aliases 'x'"},
      {R"({"output":"y","input":"x","kind":"magic"})", "got kind 'magic', allowed 'kv_cache_update', 'user'"},
  };
  for (const auto& [aliases, message] : faults) {
    const auto metadata = with_aliases(aliases);
    BOOST_TEST_REQUIRE(!metadata.ok());
    BOOST_TEST(metadata.status().message().find(message) != std::string::npos, metadata.status().message());
  }
}

BOOST_AUTO_TEST_CASE(arguments_are_inputs_then_outputs) {
  const auto with_arguments = [](const std::string& arguments) {
    return parse_metadata(R"({"io_bindings":[{"name":"a","is_input":true},{"name":"b","is_input":true},)"
                          R"({"name":"y","is_input":false},{"name":"z","is_input":false}],)"
                          R"("executorch_tensorrt":{"version":1,"arguments":)" +
                          arguments + "}}");
  };
  const auto plain = parse_metadata(kMetadata);
  BOOST_TEST(plain->num_arguments == 2u);
  BOOST_TEST(plain->outputs[0].argument.value() == 1u);
  const auto shared = with_arguments(R"({"inputs":[0,0],"outputs":[null,1]})");
  BOOST_TEST_REQUIRE(shared.ok());
  BOOST_TEST(shared->num_arguments == 2u);
  BOOST_TEST(!shared->outputs[0].argument.has_value());
  BOOST_TEST(!shared->record->profiles.has_value());
  for (const char* arguments : {
           R"({"inputs":[0],"outputs":[1,2]})",
           R"({"inputs":[1,0],"outputs":[2,3]})",
           R"({"inputs":[0,2],"outputs":[3,4]})",
           R"({"inputs":[0,null],"outputs":[1,2]})",
           R"({"inputs":[0,1],"outputs":[2,2]})",
           R"({"inputs":[0,1],"outputs":[1,2]})",
           R"({"inputs":[0,-1],"outputs":[1,2]})",
           R"({"inputs":[0,1]})",
       }) {
    BOOST_TEST(!with_arguments(arguments).ok(), arguments);
  }
}

BOOST_AUTO_TEST_SUITE_END()
