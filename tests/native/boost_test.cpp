// Boost.Test, compiled once for all test programs.
#define BOOST_TEST_MODULE etrt
#include <boost/test/included/unit_test.hpp>
