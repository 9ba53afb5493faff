// From .npy files to the inputs of a method.
#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/evalue.h>

#include <memory>
#include <string>
#include <vector>

#include "core/shape.h"
#include "program/method_info.h"

namespace executorch_tensorrt {

// One set of a method's inputs, and the memory they lie in.
struct InputSet {
  std::vector<executorch::runtime::EValue> values;
  std::vector<Shape> shapes;
  std::vector<ScalarType> dtypes;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<executorch::extension::TensorPtr> tensors;
};

// One set after another. Throws UserError for a number of files that is no multiple of the method's inputs, a file that
// cannot be read or holds no array, and an array that the method does not take.
std::vector<InputSet> read_inputs(const std::vector<std::string>& paths, const MethodInfo& info);

}  // namespace executorch_tensorrt
