#define BOOST_TEST_MODULE runtime
#include <boost/test/included/unit_test.hpp>
