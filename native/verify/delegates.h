// The delegates of a method, as far as what they are called with can end the process.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "verify/flat_table.h"
#include "verify/parts.h"
#include "verify/values.h"

namespace executorch_tensorrt {

class CheckedDelegate {
 public:
  virtual ~CheckedDelegate() = default;
  // Throws Damage where a call with these values is not to be made.
  virtual void check_call(const std::vector<const Value*>& arguments) const = 0;
  // Whether a call writes the argument. Asked of constants alone.
  virtual bool writes(std::size_t argument) const = 0;
};

// Throws Damage.
std::vector<std::unique_ptr<CheckedDelegate>> read_delegates(const FlatTable& method, const ProgramParts& parts);

}  // namespace executorch_tensorrt
