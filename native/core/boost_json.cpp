// Boost.JSON, compiled into this library instead of linked.
#include <boost/json/src.hpp>
