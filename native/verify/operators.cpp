#include "verify/operators.h"

#include <algorithm>
#include <array>

namespace executorch_tensorrt {
namespace {

struct Operator {
  std::string_view name;
  std::string_view operands;
};

// tools/update_operators.py writes it, in order.
constexpr Operator kKernels[] = {
#include "verify/operators.inc"
};

// ExecuTorch's own, without a schema in PyTorch.
constexpr Operator kOwnOperators[] = {
    {"aten::_local_scalar_dense", "T5"},
    {"aten::sym_numel", "T1"},
    {"aten::sym_size.int", "TI1"},
    {"et_copy::_d2h_copy.out", "TO"},
    {"et_copy::_h2d_copy.out", "TO"},
    {"executorch_prim::add.Scalar", "SS4"},
    {"executorch_prim::ceil.Scalar", "S1"},
    {"executorch_prim::eq.Scalar", "SS2"},
    {"executorch_prim::et_copy_index.tensor", "OTI"},
    {"executorch_prim::et_view.default", "TLZ"},
    {"executorch_prim::floordiv.Scalar", "SS4"},
    {"executorch_prim::floordiv.int", "II1"},
    {"executorch_prim::ge.Scalar", "SS2"},
    {"executorch_prim::gt.Scalar", "SS2"},
    {"executorch_prim::le.Scalar", "SS2"},
    {"executorch_prim::lt.Scalar", "SS2"},
    {"executorch_prim::mod.Scalar", "SS4"},
    {"executorch_prim::mod.int", "II1"},
    {"executorch_prim::mul.Scalar", "SS4"},
    {"executorch_prim::neg.Scalar", "S4"},
    {"executorch_prim::round.Scalar", "S1"},
    {"executorch_prim::sub.Scalar", "SS4"},
    {"executorch_prim::sym_float.Scalar", "S3"},
    {"executorch_prim::sym_int.Scalar", "S1"},
    {"executorch_prim::sym_ite.Scalar", "SSS4"},
    {"executorch_prim::sym_max.Scalar", "II1"},
    {"executorch_prim::sym_min.Scalar", "II1"},
    {"executorch_prim::sym_not.Scalar", "B2"},
    {"executorch_prim::truediv.Scalar", "SS3"},
    {"executorch_prim::trunc.Scalar", "S1"},
};

template <std::size_t kCount>
std::string_view find(const Operator (&operators)[kCount], std::string_view name) {
  const Operator* const end = operators + kCount;
  const Operator* const found = std::lower_bound(
      operators, end, name, [](const Operator& it, std::string_view wanted) { return it.name < wanted; });
  return found != end && found->name == name ? found->operands : std::string_view();
}

}  // namespace

std::string_view operands_of(std::string_view name) {
  const std::string_view own = find(kOwnOperators, name);
  return own.empty() ? find(kKernels, name) : own;
}

}  // namespace executorch_tensorrt
