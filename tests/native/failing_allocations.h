// Allocations of this thread that fail while a FailingAllocations lives: the whole program's operator new is replaced.
// What ExecuTorch takes from malloc() does not fail.
#pragma once

namespace executorch_tensorrt::testing {

class FailingAllocations {
 public:
  enum class Which { kOne, kAllAfter };

  // The first `passing` succeed.
  FailingAllocations(int passing, Which which);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  // How many failed so far.
  int failed() const;
};

}  // namespace executorch_tensorrt::testing
