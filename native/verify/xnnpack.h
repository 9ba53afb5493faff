// XNNPACK's part of a program: a graph, as a FlatBuffer of ExecuTorch's XNNPACK backend, and its constants.
#pragma once

#include <memory>

#include "verify/delegates.h"
#include "verify/flat_table.h"
#include "verify/parts.h"

namespace executorch_tensorrt {

// Throws Damage.
std::unique_ptr<CheckedDelegate> read_xnnpack(const FlatBytes& data, const ProgramParts& parts);

}  // namespace executorch_tensorrt
