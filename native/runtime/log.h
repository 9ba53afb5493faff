// ExecuTorch's log in this process.
#pragma once

namespace executorch_tensorrt {

// Drops what ExecuTorch logs from now on, for programs whose own messages say it.
void silence_log();

}  // namespace executorch_tensorrt
