// Running out of memory at every allocation in turn.
#pragma once

#include <boost/test/unit_test.hpp>
#include <vector>

#include "failing_allocations.h"

namespace executorch_tensorrt::testing {

using Which = FailingAllocations::Which;

// Calls `attempt` for every allocation that it can fail at, which are `at_least` so many; it says whether one failed.
template <typename Attempt>
void at_every_allocation(int at_least, Attempt attempt,
                         const std::vector<Which>& ways = {Which::kOne, Which::kAllAfter}) {
  for (const Which which : ways) {
    int passing = 0;
    while (attempt(passing, which)) {
      ++passing;
    }
    BOOST_TEST_MESSAGE(passing << " allocations failed, each in turn");
    BOOST_TEST(passing >= at_least);
  }
}

}  // namespace executorch_tensorrt::testing
