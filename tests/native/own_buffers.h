// A delegate over a fake engine that owns buffers.
#pragma once

#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "delegate.h"
#include "executorch_tensorrt/engine_state.h"
#include "executorch_tensorrt/last_error.h"
#include "fake_engine.h"

namespace executorch_tensorrt::testing {

struct Buffer {
  std::string name = "kv";
  std::string shape = "[2]";
  std::string dtype = "float32";
  std::string initial = "";  // hexadecimal
  bool in_place = true;      // else the engine writes the next value elsewhere
};

// x [1..4] and the engine's own buffers -> y, and each buffer plus one.
inline std::string buffers_metadata(const std::vector<Buffer>& buffers) {
  std::string inputs = R"({"name":"x","dtype":"float32","is_input":true})";
  std::string outputs = R"({"name":"y","dtype":"float32","is_input":false})";
  std::string ranges = R"({"min":[1],"opt":[2],"max":[4]})";
  std::string aliases, state, nulls;
  for (const Buffer& b : buffers) {
    const std::string dtype = R"(","dtype":")" + b.dtype + R"(","is_input":)";
    inputs += R"(,{"name":")" + b.name + dtype + "true}";
    outputs += R"(,{"name":")" + b.name + "_out" + dtype + "false}";
    ranges += R"(,{"min":)" + b.shape + R"(,"opt":)" + b.shape + R"(,"max":)" + b.shape + "}";
    if (b.in_place) {
      aliases +=
          std::string(aliases.empty() ? "" : ",") + R"({"output":")" + b.name + R"(_out","input":")" + b.name + R"("})";
    }
    state += std::string(state.empty() ? "" : ",") + R"({"name":")" + b.name + R"(","input":")" + b.name +
             (b.in_place ? "" : R"(","output":")" + b.name + "_out") + R"(","initial":")" + b.initial + R"("})";
    nulls += ",null";
  }
  return R"({"io_bindings":[)" + inputs + "," + outputs + R"(],"aliased_io":[)" + aliases +
         R"(],"executorch_tensorrt":{"version":1,"engine_kind":"fake","engine_id":"0123456789ab","profiles":[)" +
         R"({"inputs":[)" + ranges + R"(]}],"arguments":{"inputs":[0)" + nulls + R"(],"outputs":[1)" + nulls +
         R"(]},"state":[)" + state + "]}}";
}

inline std::unique_ptr<Delegate> make_delegate(const std::vector<Buffer>& buffers) {
  register_fake_engine();
  return std::make_unique<Delegate>(fake_blob(buffers_metadata(buffers)));
}

inline std::unique_ptr<Delegate> load(const std::vector<Buffer>& buffers = {{}}) {
  auto delegate = make_delegate(buffers);
  if (delegate->init() != Delegate::Error::Ok) {
    throw std::runtime_error(take_last_error());
  }
  return delegate;
}

inline std::unique_ptr<Delegate> load(const EngineState& state, const std::vector<Buffer>& buffers = {{}}) {
  const EngineStateGuard guard(state);
  return load(buffers);
}

// A call adds one to every element of every buffer.
inline Delegate::Error step(Delegate& delegate, int size = 2) {
  std::vector<float> x(8, 3.0f);
  std::vector<float> y(4);
  const auto in = executorch::extension::from_blob(x.data(), {size});
  const auto out = executorch::extension::from_blob(y.data(), {4});
  Delegate::EValue values[] = {Delegate::EValue(*in), Delegate::EValue(*out)};
  std::vector<Delegate::EValue*> args = {&values[0], &values[1]};
  const Delegate::Error error = delegate.execute(args);
  if (error == Delegate::Error::Ok && y[0] != 3.0f) {
    throw std::runtime_error("a wrong output");
  }
  return error;
}

}  // namespace executorch_tensorrt::testing
