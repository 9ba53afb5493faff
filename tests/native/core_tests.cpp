#define BOOST_TEST_MODULE core
#include <boost/test/included/unit_test.hpp>
