// Outputs that an engine writes in place of inputs: bound to the input's memory, and seen in the output argument.
#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "delegate.h"
#include "executorch_tensorrt/last_error.h"
#include "fake_engine.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::extension::from_blob;
using executorch::runtime::Error;
using executorch::runtime::EValue;

namespace {

// x, k -> y, k_out: float32 [0..4, 2], k_out in place of k.
std::string metadata(const std::string& dtype = "float32", const std::string& dtype_of_k_out = "float32") {
  const auto binding = [](const std::string& name, const std::string& type, const char* is_input) {
    return R"({"name":")" + name + R"(","dtype":")" + type + R"(","is_input":)" + is_input + "}";
  };
  const std::string range = R"({"min":[0,2],"opt":[2,2],"max":[4,2]})";
  return R"({"io_bindings":[)" + binding("x", dtype, "true") + "," + binding("k", dtype, "true") + "," +
         binding("y", dtype, "false") + "," + binding("k_out", dtype_of_k_out, "false") +
         R"(],"aliased_io":[{"output":"k_out","input":"k"}],"executorch_tensorrt":{"version":1,"engine_kind":"fake",)" +
         R"("engine_id":"0123456789ab","profiles":[{"inputs":[)" + range + "," + range + "]}]}}";
}

// A loaded delegate and its caller, whose k has values of its own.
struct Fixture {
  explicit Fixture(const std::string& text = metadata()) : delegate(fake_blob(text)) {
    fake_log() = {};
    register_fake_engine();
    BOOST_TEST_REQUIRE((delegate.init() == Error::Ok));
  }

  Error run(int rows) { return run_with(from_blob(k.data(), {rows, 2}), rows); }

  Error run_with(const executorch::extension::TensorPtr& k_in, int rows) {
    const auto x_in = from_blob(x.data(), {rows, 2});
    EValue values[] = {EValue(*x_in), EValue(*k_in), EValue(*y_out), EValue(*k_out)};
    std::vector<EValue*> args = {&values[0], &values[1], &values[2], &values[3]};
    return delegate.execute(args);
  }

  std::vector<float> x = std::vector<float>(8, 5.0f);
  std::vector<float> k = {0, 10, 20, 30, 40, 50, 60, 70};
  std::vector<float> y = std::vector<float>(8, -1.0f);
  std::vector<float> k_seen = std::vector<float>(8, -1.0f);
  executorch::extension::TensorPtr y_out = from_blob(y.data(), {4, 2});
  executorch::extension::TensorPtr k_out = from_blob(k_seen.data(), {4, 2});
  Delegate delegate;
};

const std::vector<float> kBefore = {0, 10, 20, 30, 40, 50, 60, 70};
const std::vector<float> kAfterTwoRows = {1, 11, 21, 31, 40, 50, 60, 70};

bool told(const std::string& part) {
  const std::string text = take_last_error();
  BOOST_TEST_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(aliased)

BOOST_AUTO_TEST_CASE(an_update_is_in_the_input_and_in_the_output_argument) {
  Fixture f;
  BOOST_TEST((f.run(2) == Error::Ok));
  BOOST_TEST(f.k == kAfterTwoRows);
  BOOST_TEST(f.k_out->size(0) == 2);
  BOOST_TEST(f.k_seen == (std::vector<float>{1, 11, 21, 31, -1, -1, -1, -1}));
  BOOST_TEST(f.y[3] == 5.0f);
}

BOOST_AUTO_TEST_CASE(an_output_argument_in_the_inputs_memory_is_not_copied) {
  Fixture f;
  f.k_out = from_blob(f.k.data(), {4, 2});
  BOOST_TEST((f.run(2) == Error::Ok));
  BOOST_TEST(f.k == kAfterTwoRows);
}

BOOST_AUTO_TEST_CASE(an_update_follows_its_input_to_other_memory) {
  Fixture f;
  BOOST_TEST((f.run(2) == Error::Ok));
  std::vector<float> moved = {7, 7, 7, 7};
  BOOST_TEST((f.run_with(from_blob(moved.data(), {2, 2}), 2) == Error::Ok));
  BOOST_TEST(moved == std::vector<float>(4, 8.0f));
  BOOST_TEST(f.k == kAfterTwoRows);
  BOOST_TEST(f.k_seen[0] == 8.0f);
}

BOOST_AUTO_TEST_CASE(an_empty_input_is_updated_to_an_empty_output) {
  Fixture f;
  BOOST_TEST((f.run(0) == Error::Ok));
  BOOST_TEST(f.k_out->numel() == 0);
  BOOST_TEST(f.k == kBefore);
}

BOOST_AUTO_TEST_CASE(an_output_of_another_shape_than_its_input_is_refused_before_anything_is_written) {
  for (const auto& dims : std::vector<std::vector<std::int64_t>>{{3, 2}, {1, 2}, {1, 4}}) {
    Fixture f;
    BOOST_TEST((f.run(1) == Error::Ok));
    const auto k = f.k;
    const auto seen = f.k_seen;
    fake_log().infer_as = {{1, make_shape(dims)}};
    BOOST_TEST((f.run(2) == Error::InvalidArgument));
    BOOST_TEST(told("output 'k_out' is written in place of an input of another size: got " +
                    to_string(make_shape(dims)) + ", allowed (2, 2)"));
    BOOST_TEST(fake_log().enqueue == 1);
    BOOST_TEST((f.k == k && f.k_seen == seen));
    BOOST_TEST(f.k_out->size(0) == 1);
    BOOST_TEST(f.y_out->size(0) == 1);
    fake_log().infer_as.clear();
    BOOST_TEST((f.run(3) == Error::Ok));
  }
}

BOOST_AUTO_TEST_CASE(an_output_argument_of_another_element_size_is_refused) {
  Fixture f(metadata("", ""));  // no dtypes: neither blob nor engine has them
  std::vector<double> doubles(8, -1.0);
  f.k_out = from_blob(doubles.data(), {4, 2}, executorch::aten::ScalarType::Double);
  BOOST_TEST((f.run(2) == Error::InvalidArgument));
  BOOST_TEST(told("output 'k_out' is written in place of an input of another size"));
  BOOST_TEST(fake_log().enqueue == 0);
  BOOST_TEST(f.k_out->size(0) == 4);
}

BOOST_AUTO_TEST_CASE(an_output_argument_without_memory_is_refused) {
  Fixture f;
  executorch::aten::SizesType sizes[] = {4, 2};
  executorch::aten::DimOrderType order[] = {0, 1};
  executorch::aten::StridesType strides[] = {2, 1};
  executorch::aten::TensorImpl no_memory(executorch::aten::ScalarType::Float, 2, sizes, nullptr, order, strides,
                                         executorch::aten::TensorShapeDynamism::DYNAMIC_BOUND);
  f.k_out = executorch::extension::TensorPtr(new executorch::aten::Tensor(&no_memory));
  BOOST_TEST((f.run(2) == Error::InvalidArgument));
  BOOST_TEST(told("output 'k_out' has no memory: set it before the call (Module::set_output)"));
  BOOST_TEST(f.k == kBefore);
}

BOOST_AUTO_TEST_CASE(a_failing_engine_leaves_input_and_outputs) {
  for (const char* step : {"infer", "input", "output", "enqueue"}) {
    for (int position = 0; position < 2; ++position) {
      Fixture f;
      BOOST_TEST((f.run(1) == Error::Ok));
      const auto k = f.k;
      const auto seen = f.k_seen;
      fake_log().fail_at = step;
      fake_log().fail_after = position;
      std::vector<float> moved = {7, 7, 7, 7};
      const Error error = f.run_with(from_blob(moved.data(), {2, 2}), 2);
      fake_log().fail_at.clear();
      if (fake_log().failed == 0) {
        continue;
      }
      BOOST_TEST((error == Error::Internal));
      BOOST_TEST((f.k == k && f.k_seen == seen && moved == std::vector<float>(4, 7.0f)));
      BOOST_TEST(f.k_out->size(0) == 1);
      BOOST_TEST((f.run(1) == Error::Ok));
      BOOST_TEST(f.k_seen[0] == 2.0f);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_output_of_another_dtype_than_its_input_is_refused_at_load) {
  fake_log() = {};
  register_fake_engine();
  Delegate delegate(fake_blob(metadata("float32", "float64")));
  BOOST_TEST((delegate.init() == Error::InvalidProgram));
  BOOST_TEST(told("output 'k_out' is written in place of input 'k' of another dtype: got float64, allowed float32"));
  BOOST_TEST(fake_log().engines == fake_log().engines_freed);
}

BOOST_AUTO_TEST_SUITE_END()
