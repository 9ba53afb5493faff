// ShapeProgram: the symbolic shapes of an engine, so that its output shapes are known before anything runs.
//
// Symbols are solved from input dims; every input dim is then checked against its expression (two inputs that share a
// dim must agree) and every output dim is evaluated. Engines that infer shapes themselves have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/internal.h"
#include "core/shape.h"
#include "core/status.h"

namespace executorch_tensorrt {

// An expression in postfix order. Each value pushes; each operator takes `arity` operands.
class DimExpr {
 public:
  enum class Op : std::uint8_t { kConstant, kSymbol, kAdd, kMul, kFloorDiv, kMod, kMin, kMax };
  struct Term {
    Op op;
    std::int64_t value;  // the constant, the symbol's number, or the operator's arity
  };

  // Limits what an untrusted blob can make us evaluate.
  static constexpr std::size_t kMaxTerms = 256;

  explicit DimExpr(std::vector<Term> terms) : terms_(std::move(terms)) {}

  // Fails unless the terms form one value, with known operators and symbols below `num_symbols`.
  Status check(std::size_t num_symbols) const;

  // kInvalidArgument on overflow or division by zero. The expression has been checked.
  Result<std::int64_t> evaluate(const std::vector<std::int64_t>& symbols) const;

  bool is_constant() const { return terms_.size() == 1 && terms_[0].op == Op::kConstant; }

 private:
  std::vector<Term> terms_;
};

// symbol = (dim `dim` of input `input` - offset) / scale, which must divide.
struct SymbolSource {
  std::size_t input = 0;
  std::size_t dim = 0;
  std::int64_t scale = 1;
  std::int64_t offset = 0;
};

class ShapeProgram {
 public:
  using Dims = std::vector<DimExpr>;

  // Fails with kInvalidProgram when a source or an expression is out of range.
  static Result<ShapeProgram> create(std::vector<SymbolSource> symbols, std::vector<Dims> inputs,
                                     std::vector<Dims> outputs);

  std::size_t num_inputs() const { return inputs_.size(); }
  std::size_t num_outputs() const { return outputs_.size(); }

  // Evaluates the output shapes for input shapes whose ranks are known to fit (select_profile saw them). `names` are
  // the input names, for messages.
  ETRT_INTERNAL Status infer(const std::vector<Shape>& inputs, const std::vector<std::string>& names,
                             std::vector<Shape>& outputs) const;

 private:
  ShapeProgram() = default;

  Result<std::vector<std::int64_t>> solve_symbols(const std::vector<Shape>& inputs,
                                                  const std::vector<std::string>& names) const;

  std::vector<SymbolSource> symbols_;
  std::vector<Dims> inputs_;
  std::vector<Dims> outputs_;
};

}  // namespace executorch_tensorrt
