#include <boost/test/unit_test.hpp>
#include <string>

#include "core/selection.h"

using namespace executorch_tensorrt;

namespace {

Shape shape(std::initializer_list<std::int64_t> dims) { return make_shape(std::vector<std::int64_t>(dims)); }

// x: (1, 2..32) and (1, 16..256): overlapping.
ProfileTable overlapping() {
  return *ProfileTable::create({"x"}, {{{{1, 1, 1}, {2, 8, 32}}}, {{{1, 1, 1}, {16, 64, 256}}}});
}

ProfileTable one_dynamic() { return *ProfileTable::create({"x"}, {{{{1, 1, 1}, {2, 8, 32}}}}); }
ProfileTable one_static() { return *ProfileTable::create({"x"}, {{{{1, 1, 1}, {8, 8, 8}}}}); }

bool mentions(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(selection)

BOOST_AUTO_TEST_CASE(default_is_profile_0) { BOOST_TEST(*select_profile(overlapping(), {shape({1, 20})}, {}) == 0u); }

BOOST_AUTO_TEST_CASE(default_takes_the_load_option) {
  BOOST_TEST(*select_profile(overlapping(), {shape({1, 200})}, {}, Request::automatic()) == 1u);
  BOOST_TEST(*select_profile(overlapping(), {shape({1, 20})}, {}, Request::pinned(1)) == 1u);
}

BOOST_AUTO_TEST_CASE(guard_overrides_the_load_option) {
  BOOST_TEST(*select_profile(overlapping(), {shape({1, 20})}, Request::pinned(0), Request::pinned(1)) == 0u);
}

BOOST_AUTO_TEST_CASE(auto_prefers_the_lowest_index_in_an_overlap) {
  BOOST_TEST(*select_profile(overlapping(), {shape({1, 16})}, Request::automatic()) == 0u);
  BOOST_TEST(*select_profile(overlapping(), {shape({1, 33})}, Request::automatic()) == 1u);
}

BOOST_AUTO_TEST_CASE(auto_says_what_every_profile_accepts) {
  const auto result = select_profile(overlapping(), {shape({1, 300})}, Request::automatic());
  BOOST_TEST_REQUIRE(!result.ok());
  BOOST_TEST(mentions(result.status(), "'x' (1, 300)"));
  BOOST_TEST(mentions(result.status(), "profile 0 accepts 'x' (1, 2..32)"));
  BOOST_TEST(mentions(result.status(), "profile 1 accepts 'x' (1, 16..256)"));
}

BOOST_AUTO_TEST_CASE(a_miss_names_the_dim_and_the_profile_that_fits) {
  const auto result = select_profile(overlapping(), {shape({1, 200})}, Request::pinned(0));
  BOOST_TEST_REQUIRE(!result.ok());
  BOOST_TEST(mentions(result.status(), "input 'x' dim 1: got 200, allowed 2..32 in profile 0"));
  BOOST_TEST(mentions(result.status(), "OptimizationProfileGuard(1)"));
}

BOOST_AUTO_TEST_CASE(rank_is_checked_before_dims) {
  for (const Shape& wrong : {shape({}), shape({1}), shape({1, 8, 1})}) {
    const auto result = select_profile(overlapping(), {wrong}, Request::automatic());
    BOOST_TEST_REQUIRE(!result.ok());
    BOOST_TEST(mentions(result.status(), "allowed rank 2"));
  }
}

BOOST_AUTO_TEST_CASE(an_index_past_the_end_is_an_error) {
  const auto result = select_profile(overlapping(), {shape({1, 20})}, Request::pinned(2));
  BOOST_TEST_REQUIRE(!result.ok());
  BOOST_TEST(mentions(result.status(), "got 2, allowed 0..1"));
}

BOOST_AUTO_TEST_CASE(a_static_engine_runs_its_only_profile_whatever_is_pinned) {
  BOOST_TEST(*select_profile(one_static(), {shape({1, 8})}, Request::pinned(3)) == 0u);
  BOOST_TEST(!select_profile(one_static(), {shape({1, 9})}, Request::pinned(3)).ok());
}

BOOST_AUTO_TEST_CASE(a_dynamic_engine_with_one_profile_refuses_another_index) {
  BOOST_TEST(!select_profile(one_dynamic(), {shape({1, 8})}, Request::pinned(1)).ok());
  BOOST_TEST(*select_profile(one_dynamic(), {shape({1, 8})}, Request::pinned(0)) == 0u);
}

BOOST_AUTO_TEST_CASE(an_engine_without_inputs_is_static) {
  const ProfileTable table = *ProfileTable::create({}, {{}});
  BOOST_TEST(table.is_static());
  BOOST_TEST(*select_profile(table, {}, Request::automatic()) == 0u);
}

BOOST_AUTO_TEST_CASE(profiles_that_differ_make_a_table_dynamic) {
  BOOST_TEST(!ProfileTable::create({"x"}, {{{{4, 4, 4}}}, {{{8, 8, 8}}}})->is_static());
}

BOOST_AUTO_TEST_CASE(a_table_refuses_ranges_that_are_none) {
  BOOST_TEST(!ProfileTable::create({"x"}, {}).ok());
  BOOST_TEST(!ProfileTable::create({"x"}, {{{{3, 2, 4}}}}).ok());
  BOOST_TEST(!ProfileTable::create({"x"}, {{{{1, 5, 4}}}}).ok());
  BOOST_TEST(!ProfileTable::create({"x"}, {{{{-1, 2, 4}}}}).ok());
  BOOST_TEST(!ProfileTable::create({"x"}, {{{{1, 1, 1}}}, {{{1, 1, 1}, {1, 1, 1}}}}).ok());
  BOOST_TEST(!ProfileTable::create({"x", "y"}, {{{{1, 1, 1}}}}).ok());
}

BOOST_AUTO_TEST_SUITE_END()
