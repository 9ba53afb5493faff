// The kernels of torch.ops.executorch_tensorrt.execute_engine.
#pragma once

#include "aoti/torch_api.h"

namespace executorch_tensorrt {

void execute_engine(torch_api::Value* stack, std::uint64_t num_arguments, std::uint64_t num_outputs);
void execute_engine_in_place(torch_api::Value* stack, std::uint64_t num_arguments, std::uint64_t num_outputs);

// To the dispatcher, a status is an exception: std::invalid_argument where the caller is wrong, else
// std::runtime_error. `context` goes before the message.
[[noreturn]] void throw_status(const std::string& context, const Status& status);

}  // namespace executorch_tensorrt
