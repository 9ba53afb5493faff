// A delegate over a fake engine with three inputs and three outputs, and the memory of its caller.
#pragma once

#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <deque>
#include <string>
#include <vector>

#include "delegate.h"
#include "executorch_tensorrt/last_error.h"
#include "fake_engine.h"

namespace executorch_tensorrt::testing {

// a, b, c -> x, y, z: float32 [rows, 2], profile 0: 1..4 rows, profile 1: 3..16.
inline std::string three_by_three_metadata() {
  std::string bindings;
  for (const char* name : {"a", "b", "c", "x", "y", "z"}) {
    bindings += (bindings.empty() ? R"({"name":")" : R"(,{"name":")") + std::string(name) +
                R"(","dtype":"float32","is_input":)" + (*name < 'x' ? "true}" : "false}");
  }
  std::string profiles;
  for (const char* range : {R"({"min":[1,2],"opt":[2,2],"max":[4,2]})", R"({"min":[3,2],"opt":[8,2],"max":[16,2]})"}) {
    profiles += std::string(profiles.empty() ? "" : ",") + R"({"inputs":[)" + range + "," + range + "," + range + "]}";
  }
  return R"({"io_bindings":[)" + bindings + R"(],"executorch_tensorrt":{"version":1,"engine_kind":"fake",)" +
         R"("engine_id":"0123456789ab","profiles":[)" + profiles + "]}}";
}

class ThreeByThree {
 public:
  using Error = executorch::runtime::Error;
  using EValue = executorch::runtime::EValue;
  using TensorPtr = executorch::extension::TensorPtr;
  static constexpr int kMaxRows = 16;

  // What the caller sees of the outputs.
  struct Seen {
    std::vector<int> rows;
    std::vector<std::vector<float>> data;
    bool operator==(const Seen& other) const { return rows == other.rows && data == other.data; }
  };

  ThreeByThree() : delegate(fake_blob(three_by_three_metadata())) {
    fake_log() = {};
    register_fake_engine();
    for (auto& memory : output_memory) {
      memory.assign(kMaxRows * 2, -1.0f);
      outputs.push_back(executorch::extension::from_blob(memory.data(), {kMaxRows, 2}));
    }
  }

  // Inputs of `rows` rows in memory that no call had before, with values of their own; sets `values` and `args`.
  void prepare(int rows) {
    values.clear();
    args.clear();
    inputs.clear();
    for (int i = 0; i < 3; ++i) {
      input_memory.emplace_back(static_cast<std::size_t>(rows) * 2, ++next_value);
      inputs.push_back(executorch::extension::from_blob(input_memory.back().data(), {rows, 2}));
      values.emplace_back(*inputs.back());
    }
    for (const TensorPtr& output : outputs) {
      values.emplace_back(*output);
    }
    for (EValue& value : values) {
      args.push_back(&value);
    }
  }

  Error execute(executorch::runtime::EventTracer* tracer = nullptr) { return delegate.execute(args, tracer); }

  Error run(int rows) {
    prepare(rows);
    return execute();
  }

  Seen seen() const {
    Seen out;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      out.rows.push_back(static_cast<int>(outputs[o]->size(0)));
      out.data.push_back(output_memory[o]);
    }
    return out;
  }

  // Whether the outputs are what the inputs of the last prepare() give.
  bool right() const {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const TensorPtr& in = inputs[o];
      if (outputs[o]->size(0) != in->size(0) ||
          !std::equal(in->const_data_ptr<float>(), in->const_data_ptr<float>() + in->numel(),
                      outputs[o]->const_data_ptr<float>())) {
        return false;
      }
    }
    return true;
  }

  // After the delegate's end: everything made was freed.
  static bool nothing_is_left() {
    const FakeEngineLog& log = fake_log();
    return log.engines == log.engines_freed && log.contexts_made == log.contexts_freed;
  }

  float next_value = 0.0f;
  std::deque<std::vector<float>> input_memory;
  std::vector<std::vector<float>> output_memory{3};
  std::vector<TensorPtr> inputs;
  std::vector<TensorPtr> outputs;
  std::vector<EValue> values;
  std::vector<EValue*> args;
  Delegate delegate;
};

}  // namespace executorch_tensorrt::testing
