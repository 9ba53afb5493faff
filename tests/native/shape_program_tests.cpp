#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "core/shape_program.h"

using namespace executorch_tensorrt;

namespace {

using Op = DimExpr::Op;

DimExpr constant(std::int64_t value) { return DimExpr({{Op::kConstant, value}}); }
DimExpr symbol(std::int64_t number) { return DimExpr({{Op::kSymbol, number}}); }

const std::vector<std::string> kNames{"x", "y"};

Shape shape(std::initializer_list<std::int64_t> dims) { return make_shape(std::vector<std::int64_t>(dims)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(shape_program)

BOOST_AUTO_TEST_CASE(outputs_follow_the_inputs) {
  // x: (s0, 4), y: (65 - s0,) -> (2 * s0 + 1, 3)
  const DimExpr decreasing({{Op::kConstant, 65}, {Op::kConstant, -1}, {Op::kSymbol, 0}, {Op::kMul, 2}, {Op::kAdd, 2}});
  const DimExpr composite({{Op::kConstant, 2}, {Op::kSymbol, 0}, {Op::kMul, 2}, {Op::kConstant, 1}, {Op::kAdd, 2}});
  const ShapeProgram program =
      *ShapeProgram::create({{0, 0, 1, 0}}, {{symbol(0), constant(4)}, {decreasing}}, {{composite, constant(3)}});
  std::vector<Shape> outputs;
  BOOST_TEST_REQUIRE(program.infer({shape({5, 4}), shape({60})}, kNames, outputs).ok());
  BOOST_TEST((outputs == std::vector<Shape>{shape({11, 3})}));
}

BOOST_AUTO_TEST_CASE(inputs_that_share_a_dim_must_agree) {
  const ShapeProgram program = *ShapeProgram::create({{0, 0, 1, 0}}, {{symbol(0)}, {symbol(0)}}, {{symbol(0)}});
  std::vector<Shape> outputs;
  const Status status = program.infer({shape({5}), shape({6})}, kNames, outputs);
  BOOST_TEST(status.message().find("input 'y' dim 0: got 6, allowed 5") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_affine_source_must_divide) {
  const DimExpr odd({{Op::kConstant, 2}, {Op::kSymbol, 0}, {Op::kMul, 2}, {Op::kConstant, 1}, {Op::kAdd, 2}});
  const ShapeProgram program = *ShapeProgram::create({{0, 0, 2, 1}}, {{odd}}, {{symbol(0)}});
  std::vector<Shape> outputs;
  BOOST_TEST(program.infer({shape({9})}, {"x"}, outputs).ok());
  BOOST_TEST((outputs[0] == shape({4})));
  BOOST_TEST(!program.infer({shape({8})}, {"x"}, outputs).ok());
}

BOOST_AUTO_TEST_CASE(floordiv_and_mod_round_down) {
  const DimExpr quotient(
      {{Op::kSymbol, 0}, {Op::kConstant, -7}, {Op::kAdd, 2}, {Op::kConstant, 2}, {Op::kFloorDiv, 2}});
  const DimExpr rest({{Op::kSymbol, 0}, {Op::kConstant, -7}, {Op::kAdd, 2}, {Op::kConstant, 2}, {Op::kMod, 2}});
  BOOST_TEST(*quotient.evaluate({4}) == -2);
  BOOST_TEST(*rest.evaluate({4}) == 1);
  const DimExpr extreme({{Op::kSymbol, 0}, {Op::kConstant, 3}, {Op::kMod, 2}});
  BOOST_TEST(*extreme.evaluate({INT64_MIN}) == 1);
}

BOOST_AUTO_TEST_CASE(overflow_and_division_by_zero_are_errors) {
  const DimExpr product({{Op::kSymbol, 0}, {Op::kSymbol, 0}, {Op::kMul, 2}});
  BOOST_TEST(!product.evaluate({INT64_MAX}).ok());
  const DimExpr division({{Op::kConstant, 1}, {Op::kSymbol, 0}, {Op::kFloorDiv, 2}});
  BOOST_TEST(!division.evaluate({0}).ok());
}

BOOST_AUTO_TEST_CASE(an_output_dim_stays_within_32_bits) {
  const DimExpr product({{Op::kSymbol, 0}, {Op::kConstant, 1 << 20}, {Op::kMul, 2}});
  const ShapeProgram program = *ShapeProgram::create({{0, 0, 1, 0}}, {{symbol(0)}}, {{product}});
  std::vector<Shape> outputs;
  BOOST_TEST(program.infer({shape({2047})}, {"x"}, outputs).ok());
  BOOST_TEST(!program.infer({shape({2048})}, {"x"}, outputs).ok());
}

BOOST_AUTO_TEST_CASE(malformed_expressions_are_refused) {
  for (const std::vector<DimExpr::Term>& terms : {
           std::vector<DimExpr::Term>{},
           {{Op::kSymbol, 1}},
           {{Op::kSymbol, -1}},
           {{Op::kConstant, 1}, {Op::kConstant, 2}},
           {{Op::kConstant, 1}, {Op::kAdd, 2}},
           {{Op::kConstant, 1}, {Op::kAdd, 1}},
           {{Op::kConstant, 1}, {Op::kAdd, -1}},
           std::vector<DimExpr::Term>(DimExpr::kMaxTerms + 1, {Op::kConstant, 1}),
       }) {
    BOOST_TEST(!DimExpr(terms).check(1).ok());
  }
}

BOOST_AUTO_TEST_CASE(sources_outside_the_inputs_are_refused) {
  BOOST_TEST(!ShapeProgram::create({{1, 0, 1, 0}}, {{symbol(0)}}, {}).ok());
  BOOST_TEST(!ShapeProgram::create({{0, 1, 1, 0}}, {{symbol(0)}}, {}).ok());
  BOOST_TEST(!ShapeProgram::create({{0, 0, 0, 0}}, {{symbol(0)}}, {}).ok());
}

BOOST_AUTO_TEST_SUITE_END()
