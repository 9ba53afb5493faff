// What kinds of values ExecuTorch's kernels take: they end the process where they get another.
#pragma once

#include <string_view>

namespace executorch_tensorrt {

// A letter an argument. Lower case: may be none. T tensor, O tensor that is written, Z tensor that is given memory,
// S number, I int, F double, B bool, Y string, L list of int, D list of double, G list of bool, X list of tensors,
// W list of tensors that is written, V list of optional tensors. Numbers that the kernel sets: 1 int, 2 bool, 3 double,
// 4 of the kinds of its numbers, 5 as its tensor. Empty for an operator that is not ExecuTorch's: nobody knows.
std::string_view operands_of(std::string_view name);

}  // namespace executorch_tensorrt
