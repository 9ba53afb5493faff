#include "verify/method.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/scalar_type.h"
#include "core/text.h"
#include "verify/delegates.h"
#include "verify/facts.h"
#include "verify/operators.h"
#include "verify/values.h"

namespace executorch_tensorrt {
namespace {

enum MethodField { kInputs = 3, kOutputs = 4, kChains = 5, kOperators = 6 };
enum ChainField { kInstructions = 2 };
enum InstructionField { kType = 0, kContent = 1 };
enum InstructionType { kKernelCall = 1, kDelegateCall = 2, kMoveCall = 3, kJumpFalseCall = 4, kFreeCall = 5 };
enum CallField { kCallee = 0, kArguments = 1 };
enum MoveField { kFrom = 0, kTo = 1 };
enum JumpField { kCondition = 0, kDestination = 1 };
enum OperatorField { kName = 0, kOverload = 1 };

// ExecuTorch ends loops after 10 million instructions, this those that it can't follow.
constexpr int kMaxPasses = 32;

struct Operator {
  std::string name;
  std::string_view operands;
};

// What ExecuTorch's kernels find a common type for; with another among several they abort.
bool has_common_types(std::int8_t dtype) { return dtype <= 11 || dtype == 15; }

bool is_result(char operand) { return operand >= '1' && operand <= '5'; }

class MethodCheck {
 public:
  MethodCheck(const FlatTable& method, const ProgramParts& parts)
      : parts_(parts),
        values_(read_values(method, parts)),
        delegates_(read_delegates(method, parts)),
        is_border_(values_.size()),
        facts_(values_.size()) {
    for (std::size_t k = 0; k < values_.size(); ++k) {
      facts_[k].kinds = bit(values_[k].kind);
      facts_[k].is_constant = values_[k].kind == Kind::kTensor && values_[k].memory == Memory::kConstant;
      facts_[k].lacks_data =
          values_[k].kind == Kind::kTensor && values_[k].memory == Memory::kCaller && values_[k].nbytes > 0;
    }
    read_operators(method.tables(kOperators));
    read_border(method.numbers<std::int32_t>(kInputs), "input");
    read_border(method.numbers<std::int32_t>(kOutputs), "output");
  }

  void run(const FlatTables& chains) {
    require(chains.exists() && chains.size() > 0, "it has no chain of instructions");
    parts_.spend(chains.size());
    for (std::size_t c = 0; c < chains.size(); ++c) {
      const FlatTables instructions = chains[c].tables(kInstructions);
      require(instructions.exists(), "a chain has no instructions");
      run_chain(instructions);
    }
  }

 private:
  void read_operators(const FlatTables& operators) {
    parts_.spend(operators.size());
    for (std::size_t k = 0; k < operators.size(); ++k) {
      const std::string_view name = operators[k].text(kName);
      const std::string_view overload = operators[k].text(kOverload);
      require(!name.empty(), "an operator has no name");
      require_name(name, "an operator has a name that none has");
      require_name(overload, "an operator has a name that none has");
      std::string whole(name);
      if (!overload.empty()) {
        whole += "." + std::string(overload);
      }
      operators_.push_back({whole, operands_of(whole)});
    }
  }

  void read_border(const FlatNumbers<std::int32_t>& indices, const char* side) {
    require(indices.exists(), "it has no list of inputs or of outputs");
    parts_.spend(indices.size());
    for (std::size_t k = 0; k < indices.size(); ++k) {
      const std::size_t value = index(side, indices[k]);
      if ((bit(values_[value].kind) & kAtBorder) == 0) {
        throw Damage(std::string(side) + " " + std::to_string(k) + ": got " + kind_name(values_[value].kind) +
                     ", allowed a tensor, a number, a string or none");
      }
      require(*side == 'o' || !facts_[value].is_constant, "an input is a constant");
      facts_[value].lacks_data = false;
      is_border_[value] = true;
    }
  }

  std::size_t index(const char* what, std::int64_t value) const {
    require_range(what, value, 0, static_cast<std::int64_t>(values_.size()) - 1);
    return static_cast<std::size_t>(value);
  }

  void run_chain(const FlatTables& instructions) {
    std::map<std::size_t, Facts> arrivals;  // by the instruction that is jumped to
    const Facts begin = facts_;
    bool is_new = true;
    for (int pass = 0; is_new; ++pass) {
      require(pass < kMaxPasses, "its jumps can't be followed");
      is_new = false;
      parts_.spend(facts_.size());
      facts_ = begin;
      for (std::size_t k = 0; k < instructions.size(); ++k) {
        arrive(arrivals, k);
        is_new |= within("instruction", k, [&] { return run_instruction(instructions, k, arrivals); });
      }
      arrive(arrivals, instructions.size());
    }
  }

  void arrive(std::map<std::size_t, Facts>& arrivals, std::size_t instruction) {
    const auto found = arrivals.find(instruction);
    if (found != arrivals.end()) {
      parts_.spend(facts_.size());
      merge(facts_, found->second);
    }
  }

  // Whether a jump brings something new to where it goes.
  bool run_instruction(const FlatTables& instructions, std::size_t k, std::map<std::size_t, Facts>& arrivals) {
    parts_.spend(1);
    const FlatTable instruction = instructions[k];
    const auto type = instruction.number<std::uint8_t>(kType);
    require_range("kind", type, kKernelCall, kFreeCall);
    const FlatTable content = instruction.table(kContent);
    require(content.exists(), "it has no content");
    switch (type) {
      case kKernelCall:
        call_kernel(content.number<std::int32_t>(kCallee), arguments_of(content));
        return false;
      case kDelegateCall:
        call_delegate(content.number<std::int32_t>(kCallee), arguments_of(content));
        return false;
      case kMoveCall:
        move(index("value", content.number<std::int32_t>(kFrom)), index("value", content.number<std::int32_t>(kTo)));
        return false;
      case kJumpFalseCall:
        return jump(instructions, k, content, arrivals);
      default:
        release(index("value", content.number<std::int32_t>(0)));
        return false;
    }
  }

  std::vector<std::size_t> arguments_of(const FlatTable& call) const {
    const auto numbers = call.numbers<std::int32_t>(kArguments);
    require(numbers.exists(), "it has no arguments");
    parts_.spend(numbers.size());
    std::vector<std::size_t> arguments(numbers.size());
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      arguments[k] = index("argument", numbers[k]);
    }
    return arguments;
  }

  void call_kernel(std::int32_t callee, const std::vector<std::size_t>& arguments) {
    require_range("operator", callee, 0, static_cast<std::int64_t>(operators_.size()) - 1);
    const Operator& called = operators_[static_cast<std::size_t>(callee)];
    try {
      check_kernel(called.name, called.operands, arguments);
    } catch (const Damage& damage) {
      throw Damage("operator " + quoted(called.name) + ": " + damage.what());
    }
  }

  void check_kernel(const std::string& name, std::string_view operands, const std::vector<std::size_t>& arguments) {
    if (operands.empty()) {
      return;
    }
    require_range("arguments", static_cast<std::int64_t>(arguments.size()), static_cast<std::int64_t>(operands.size()),
                  static_cast<std::int64_t>(2 * operands.size()));
    const auto numbers = std::count_if(operands.begin(), operands.end(),
                                       [](char operand) { return std::strchr("TtSsXV", operand) != nullptr; });
    for (std::size_t k = 0; k < operands.size() && numbers > 1; ++k) {
      const Value& value = values_[arguments[k]];
      require(value.kind != Kind::kTensor || has_common_types(value.dtype),
              "a tensor's element type is none to compute with");
    }
    const bool copies_between_devices = name.rfind("et_copy::", 0) == 0;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (!is_result(operands[k])) {
        within("argument", k, [&] { check_operand(operands[k], arguments[k], copies_between_devices); });
      }
    }
    if (name == "aten::sym_size.int") {
      check_dim(arguments[0], arguments[1]);
    } else if (name == "aten::view_copy.out" || name == "executorch_prim::et_view.default") {
      check_view(values_[arguments[1]].items);
    } else if (name.find("::floordiv.") != std::string::npos || name.find("::mod.") != std::string::npos) {
      require(values_[arguments[1]].kind != Kind::kInt || facts_[arguments[1]].is_written ||
                  values_[arguments[1]].number != 0,
              "it divides by 0");
    }
    if (name == "executorch_prim::et_view.default") {
      facts_[arguments[2]].lacks_data = facts_[arguments[0]].lacks_data;
      facts_[arguments[2]].is_constant |= facts_[arguments[0]].is_constant;
    }
    if (is_result(operands.back())) {
      require((facts_[arguments[operands.size() - 1]].kinds & ~kNumbers) == 0, "its result is no number");
      write(arguments[operands.size() - 1], result_of(operands, arguments));
    }
  }

  void check_operand(char operand, std::size_t value, bool copies_between_devices) const {
    check_kinds(value, kinds_of(operand));
    if (values_[value].kind == Kind::kTensor && operand != 'Z') {
      check_tensor(value, operand == 'O', copies_between_devices);
    }
    parts_.spend(values_[value].items.size());
    for (const std::int64_t item : values_[value].items) {
      if (values_[value].kind == Kind::kIntList) {
        check_kinds(static_cast<std::size_t>(item), bit(Kind::kInt));
      } else if (item >= 0) {
        const Kinds none = values_[value].kind == Kind::kOptionalTensorList ? bit(Kind::kNone) : Kinds{0};
        check_kinds(static_cast<std::size_t>(item), bit(Kind::kTensor) | none);
        if (values_[static_cast<std::size_t>(item)].kind == Kind::kTensor) {
          check_tensor(static_cast<std::size_t>(item), operand == 'W', copies_between_devices);
        }
      }
    }
  }

  void check_kinds(std::size_t value, Kinds allowed) const {
    const Kinds wrong = facts_[value].kinds & ~allowed;
    if (wrong != 0) {
      std::string got;
      std::string wanted;
      for (unsigned kind = 0; kind <= static_cast<unsigned>(Kind::kOptionalTensorList); ++kind) {
        const std::string name = kind_name(static_cast<Kind>(kind));
        got += (wrong >> kind & 1) != 0 ? (got.empty() ? "" : " or ") + name : "";
        wanted += (allowed >> kind & 1) != 0 ? (wanted.empty() ? "" : " or ") + name : "";
      }
      throw Damage("value " + std::to_string(value) + ": got " + got + ", allowed " + wanted);
    }
  }

  void check_tensor(std::size_t value, bool is_written, bool may_be_on_device) const {
    const std::string label = "value " + std::to_string(value) + ": ";
    if (facts_[value].lacks_data) {
      throw Damage(label + "it has no memory yet");
    }
    if (is_written && facts_[value].is_constant) {
      throw Damage(label + "a constant is written");
    }
    if (!may_be_on_device && values_[value].is_on_device) {
      throw Damage(label + "it is not in host memory");
    }
  }

  void check_dim(std::size_t tensor, std::size_t dim) const {
    if (!facts_[dim].is_written) {
      require_range("dim", values_[dim].number, 0, static_cast<std::int64_t>(values_[tensor].sizes.size()) - 1);
    }
  }

  // The size that is -1 is what the others leave: elements divided by their product.
  void check_view(const std::vector<std::int64_t>& sizes) const {
    std::int64_t product = 1;
    bool is_open = false;
    for (const std::int64_t item : sizes) {
      const auto size = static_cast<std::size_t>(item);
      if (facts_[size].is_written) {
        continue;
      }
      is_open = is_open || values_[size].number == -1;
      require_range("size", values_[size].number, -1, INT32_MAX);
      require(values_[size].number == -1 || !__builtin_mul_overflow(product, values_[size].number, &product),
              "a view is larger than memory can be");
    }
    require(!is_open || product != 0, "it divides by 0");
  }

  Kinds result_of(std::string_view operands, const std::vector<std::size_t>& arguments) const {
    switch (operands.back()) {
      case '1':
        return bit(Kind::kInt);
      case '2':
        return bit(Kind::kBool);
      case '3':
        return bit(Kind::kDouble);
      case '4': {
        Kinds kinds = 0;
        for (std::size_t k = 0; k + 1 < operands.size(); ++k) {
          kinds |= facts_[arguments[k]].kinds & kNumbers;
        }
        return kinds;
      }
      default: {
        const auto dtype = static_cast<ScalarType>(values_[arguments[0]].dtype);
        const bool is_float = dtype == ScalarType::kFloat16 || dtype == ScalarType::kFloat32 ||
                              dtype == ScalarType::kFloat64 || dtype == ScalarType::kBFloat16;
        return bit(is_float ? Kind::kDouble : dtype == ScalarType::kBool ? Kind::kBool : Kind::kInt);
      }
    }
  }

  void write(std::size_t value, Kinds kinds) {
    facts_[value].kinds = kinds;
    facts_[value].is_written = true;
  }

  void call_delegate(std::int32_t callee, const std::vector<std::size_t>& arguments) {
    require_range("delegate", callee, 0, static_cast<std::int64_t>(delegates_.size()) - 1);
    const CheckedDelegate& delegate = *delegates_[static_cast<std::size_t>(callee)];
    std::vector<const Value*> values;
    for (const std::size_t argument : arguments) {
      values.push_back(&values_[argument]);
    }
    delegate.check_call(values);
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      if (values[k]->kind == Kind::kTensor) {
        check_tensor(arguments[k], facts_[arguments[k]].is_constant && delegate.writes(k), true);
      }
    }
  }

  void move(std::size_t from, std::size_t to) {
    const Value& source = values_[from];
    const Value& target = values_[to];
    const bool are_numbers = (bit(source.kind) & kNumbers) != 0 && (bit(target.kind) & kNumbers) != 0;
    if (source.kind != target.kind && !are_numbers) {
      throw Damage("got " + kind_name(source.kind) + " moved to " + kind_name(target.kind));
    }
    if (source.kind == Kind::kTensor) {
      require(source.dtype == target.dtype && source.sizes.size() == target.sizes.size() &&
                  source.is_on_device == target.is_on_device,
              "a tensor is moved to one of another kind");
    }
    require(source.items.size() == target.items.size(), "a list is moved to one of another length");
    facts_[to] = facts_[from];
    facts_[to].is_written = true;
  }

  // ExecuTorch gives memory of its own to no tensor that is freed: what was freed is never again.
  void release(std::size_t value) {
    require(values_[value].kind == Kind::kTensor && values_[value].memory == Memory::kCaller && !is_border_[value],
            "a tensor is freed that is not the method's own");
    facts_[value].lacks_data = true;
  }

  bool jump(const FlatTables& instructions, std::size_t k, const FlatTable& content,
            std::map<std::size_t, Facts>& arrivals) {
    const std::size_t condition = index("value", content.number<std::int32_t>(kCondition));
    check_kinds(condition, bit(Kind::kBool) | bit(Kind::kTensor));
    if (values_[condition].kind == Kind::kTensor) {
      require(static_cast<ScalarType>(values_[condition].dtype) == ScalarType::kBool,
              "its condition is a tensor of no bool");
      check_tensor(condition, false, false);
    }
    const auto destination = content.number<std::int32_t>(kDestination);
    require_range("destination", destination, 0, static_cast<std::int64_t>(instructions.size()));
    const auto to = static_cast<std::size_t>(destination);
    require(to > k || is_set(instructions, to, k, condition),
            "it jumps back for ever: nothing between sets its condition");
    parts_.spend(facts_.size());
    const auto [arrival, is_first] = arrivals.emplace(to, facts_);
    return (merge(arrival->second, facts_) || is_first) && to <= k;
  }

  // Whether an instruction from `first` on and before `end` takes the value as its last argument, or moves to it.
  bool is_set(const FlatTables& instructions, std::size_t first, std::size_t end, std::size_t value) const {
    parts_.spend(end - first);
    for (std::size_t k = first; k < end; ++k) {
      const auto type = instructions[k].number<std::uint8_t>(kType);
      const FlatTable content = instructions[k].table(kContent);
      const auto wanted = static_cast<std::int32_t>(value);
      if (type == kMoveCall && content.number<std::int32_t>(kTo) == wanted) {
        return true;
      }
      const auto arguments = content.numbers<std::int32_t>(kArguments);
      if ((type == kKernelCall || type == kDelegateCall) && arguments.size() > 0 &&
          arguments[arguments.size() - 1] == wanted) {
        return true;
      }
    }
    return false;
  }

  const ProgramParts& parts_;
  std::vector<Value> values_;
  std::vector<std::unique_ptr<CheckedDelegate>> delegates_;
  std::vector<Operator> operators_;
  std::vector<bool> is_border_;  // whether a value is an input or an output
  Facts facts_;
};

}  // namespace

void verify_method(const FlatTable& method, const ProgramParts& parts) {
  MethodCheck(method, parts).run(method.tables(kChains));
}

}  // namespace executorch_tensorrt
