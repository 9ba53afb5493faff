// This library's operators, for the PyTorch that the process has loaded.
#pragma once

#include <string>

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

// torch.ops.executorch_tensorrt.*, once; kNotSupported where the process has no PyTorch, or one that is too old.
//
//   execute_engine(Tensor[] inputs, Tensor engine, SymInt[] outputs) -> Tensor[]
//   execute_engine.in_place(Tensor(a!)[] buffers, Tensor[] inputs, Tensor engine, Tensor(b!)[] outputs) -> ()
//
// `outputs` of the first says of each output its dtype (PyTorch's number), its rank and its sizes. The second is for
// engines that write outputs in place of inputs, its `buffers`, in the order of these outputs; it has no others among
// its inputs and outputs.
//
// The loader of packages keeps Python's GIL for a whole call, and so do the kernels, except while they wait for an
// engine whose runtime is written in Python.
ETRT_INTERNAL Status register_all_operators();

// The profiling operators under another namespace as well.
ETRT_INTERNAL Status register_profiling_operators(const std::string& name_space);

}  // namespace executorch_tensorrt
