// What ExecuTorch would not refuse in a program, but end the process over.
#pragma once

#include <cstddef>
#include <string>

#include "executorch_tensorrt/api.h"

namespace executorch_tensorrt {

// Why a program is not to be loaded, with its method and value or instruction; empty for one that may be. Before
// ExecuTorch's Module opens a file that is not yours to trust: ExecuTorch verifies a program's structure where it is
// asked to, and aborts, or reads memory that is not the program's, where its contents make no sense. XNNPACK's parts of
// it are verified too. An engine is verified when its method loads, with take_last_error() for its text. Numbers that a
// kernel can't take are not found. How long it takes does not depend on the size of weights.
//
// Throws std::bad_alloc when there is no memory.
ETRT_API std::string verify(const std::string& path);

// The same of a program in memory, aligned to 16 bytes.
ETRT_API std::string verify(const void* data, std::size_t size);

}  // namespace executorch_tensorrt
