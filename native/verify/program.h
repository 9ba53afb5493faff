// What a .pte holds, checked before ExecuTorch meets it: ExecuTorch verifies a program's structure and aborts, or reads
// what is not the program's, where the contents make no sense. Weights are not read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace executorch_tensorrt {

// kInvalidProgram, naming method and value or instruction. Of all programs, also of those that have no structure.
Status verify_program(const void* data, std::size_t size);

}  // namespace executorch_tensorrt
