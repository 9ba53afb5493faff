// What a method does with its values, from its first instruction to its last.
#pragma once

#include "verify/flat_table.h"
#include "verify/parts.h"

namespace executorch_tensorrt {

// Throws Damage.
void verify_method(const FlatTable& method, const ProgramParts& parts);

}  // namespace executorch_tensorrt
