#include "core/shape_program.h"

#include <algorithm>
#include <array>
#include <utility>

namespace executorch_tensorrt {
namespace {

using Op = DimExpr::Op;

bool is_value(Op op) { return op == Op::kConstant || op == Op::kSymbol; }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

// False on overflow or division by zero.
bool apply(Op op, std::int64_t a, std::int64_t b, std::int64_t& out) {
  switch (op) {
    case Op::kAdd:
      return !__builtin_add_overflow(a, b, &out);
    case Op::kMul:
      return !__builtin_mul_overflow(a, b, &out);
    case Op::kFloorDiv:
    case Op::kMod:
      if (b <= 0) {
        return false;
      }
      out = op == Op::kFloorDiv ? floor_div(a, b) : floor_mod(a, b);
      return true;
    case Op::kMin:
      out = std::min(a, b);
      return true;
    case Op::kMax:
      out = std::max(a, b);
      return true;
    case Op::kConstant:
    case Op::kSymbol:
      break;
  }
  return false;
}

std::string dim_name(const std::vector<std::string>& names, std::size_t input, std::size_t dim) {
  return "input '" + names[input] + "' dim " + std::to_string(dim);
}

}  // namespace

Status DimExpr::check(std::size_t num_symbols) const {
  if (terms_.empty() || terms_.size() > kMaxTerms) {
    return invalid_program("a dim expression has " + std::to_string(terms_.size()) + " terms, allowed 1.." +
                           std::to_string(kMaxTerms));
  }
  std::size_t depth = 0;
  for (const Term& term : terms_) {
    if (is_value(term.op)) {
      if (term.op == Op::kSymbol && (term.value < 0 || static_cast<std::size_t>(term.value) >= num_symbols)) {
        return invalid_program("a dim expression names symbol s" + std::to_string(term.value) + ", defined are " +
                               std::to_string(num_symbols));
      }
      ++depth;
      continue;
    }
    if (term.value < 2 || static_cast<std::size_t>(term.value) > depth) {
      return invalid_program("a dim expression applies an operator to " + std::to_string(term.value) +
                             " operands, at hand are " + std::to_string(depth));
    }
    depth -= static_cast<std::size_t>(term.value) - 1;
  }
  if (depth != 1) {
    return invalid_program("a dim expression leaves " + std::to_string(depth) + " values, allowed 1");
  }
  return {};
}

Result<std::int64_t> DimExpr::evaluate(const std::vector<std::int64_t>& symbols) const {
  if (terms_.size() == 1) {
    return terms_[0].op == Op::kSymbol ? symbols[static_cast<std::size_t>(terms_[0].value)] : terms_[0].value;
  }
  std::array<std::int64_t, kMaxTerms> stack;
  std::size_t top = 0;
  for (const Term& term : terms_) {
    if (is_value(term.op)) {
      stack[top++] = term.op == Op::kSymbol ? symbols[static_cast<std::size_t>(term.value)] : term.value;
      continue;
    }
    const std::size_t first = top - static_cast<std::size_t>(term.value);
    std::int64_t value = stack[first];
    for (std::size_t k = first + 1; k < top; ++k) {
      if (!apply(term.op, value, stack[k], value)) {
        return invalid_argument("a dim expression overflows or divides by zero");
      }
    }
    stack[first] = value;
    top = first + 1;
  }
  return stack[0];
}

Result<ShapeProgram> ShapeProgram::create(std::vector<SymbolSource> symbols, std::vector<Dims> inputs,
                                          std::vector<Dims> outputs) {
  for (const SymbolSource& s : symbols) {
    if (s.input >= inputs.size() || s.dim >= inputs[s.input].size() || s.scale == 0) {
      return invalid_program("a shape symbol comes from input " + std::to_string(s.input) + " dim " +
                             std::to_string(s.dim) + " with scale " + std::to_string(s.scale) +
                             ", which the engine does not have");
    }
  }
  for (const std::vector<Dims>* bindings : {&inputs, &outputs}) {
    for (const Dims& dims : *bindings) {
      if (dims.size() > kMaxRank) {
        return invalid_program("a binding has rank " + std::to_string(dims.size()) + ", allowed 0.." +
                               std::to_string(kMaxRank));
      }
      for (const DimExpr& dim : dims) {
        if (Status status = dim.check(symbols.size()); !status.ok()) {
          return status;
        }
      }
    }
  }
  ShapeProgram program;
  program.symbols_ = std::move(symbols);
  program.inputs_ = std::move(inputs);
  program.outputs_ = std::move(outputs);
  return program;
}

Result<std::vector<std::int64_t>> ShapeProgram::solve_symbols(const std::vector<Shape>& inputs,
                                                              const std::vector<std::string>& names) const {
  std::vector<std::int64_t> values;
  values.reserve(symbols_.size());
  for (const SymbolSource& s : symbols_) {
    std::int64_t distance = 0;
    if (__builtin_sub_overflow(inputs[s.input][s.dim], s.offset, &distance) || distance % s.scale != 0) {
      return invalid_argument(dim_name(names, s.input, s.dim) + ": got " + std::to_string(inputs[s.input][s.dim]) +
                              ", allowed " + std::to_string(s.offset) + " plus a multiple of " +
                              std::to_string(s.scale));
    }
    values.push_back(distance / s.scale);
  }
  return values;
}

Status ShapeProgram::infer(const std::vector<Shape>& inputs, const std::vector<std::string>& names,
                           std::vector<Shape>& outputs) const {
  const Result<std::vector<std::int64_t>> symbols = solve_symbols(inputs, names);
  if (!symbols.ok()) {
    return symbols.status();
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (std::size_t d = 0; d < inputs_[i].size(); ++d) {
      const Result<std::int64_t> expected = inputs_[i][d].evaluate(*symbols);
      if (!expected.ok()) {
        return expected.status();
      }
      if (*expected != inputs[i][d]) {
        return invalid_argument(dim_name(names, i, d) + ": got " + std::to_string(inputs[i][d]) + ", allowed " +
                                std::to_string(*expected) + ", which the dims of the inputs before it ask for");
      }
    }
  }
  outputs.resize(outputs_.size());
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    outputs[o].resize(outputs_[o].size());
    for (std::size_t d = 0; d < outputs_[o].size(); ++d) {
      const Result<std::int64_t> dim = outputs_[o][d].evaluate(*symbols);
      if (!dim.ok()) {
        return dim.status();
      }
      if (*dim < 0 || *dim > INT32_MAX) {
        return invalid_argument("output " + std::to_string(o) + " dim " + std::to_string(d) + ": got " +
                                std::to_string(*dim) + ", allowed 0.." + std::to_string(INT32_MAX));
      }
      outputs[o][d] = *dim;
    }
  }
  return {};
}

}  // namespace executorch_tensorrt
