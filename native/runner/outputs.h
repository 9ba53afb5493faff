// Outputs as files.
#pragma once

#include <executorch/runtime/core/evalue.h>

#include <string>
#include <vector>

namespace executorch_tensorrt {

// Writes each as `output_N.npy` into the folder, which is made if need be, and returns the paths. Throws UserError when
// NumPy has no type for one, or the folder or a file cannot be written.
std::vector<std::string> save_outputs(const std::vector<executorch::runtime::EValue>& outputs,
                                      const std::string& folder);

}  // namespace executorch_tensorrt
