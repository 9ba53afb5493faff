// A delegate over a fake engine on a fake device, with two inputs and two outputs, and the memory of its caller.
#pragma once

#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delegate.h"
#include "delegate/options.h"
#include "executorch_tensorrt/cuda_stream_guard.h"
#include "executorch_tensorrt/last_error.h"
#include "fake_cuda.h"

namespace executorch_tensorrt::testing {

// a, b -> x, y: float32 [rows, 2], profile 0: 1..4 rows, profile 1: 3..16.
inline std::string two_by_two_metadata() {
  std::string bindings;
  for (const char* name : {"a", "b", "x", "y"}) {
    bindings += (bindings.empty() ? R"({"name":")" : R"(,{"name":")") + std::string(name) +
                R"(","dtype":"float32","is_input":)" + (*name < 'x' ? "true}" : "false}");
  }
  const std::string narrow = R"({"min":[1,2],"opt":[2,2],"max":[4,2]})";
  const std::string wide = R"({"min":[3,2],"opt":[8,2],"max":[16,2]})";
  return R"({"io_bindings":[)" + bindings + R"(],"executorch_tensorrt":{"version":1,"engine_kind":"fake",)" +
         R"("engine_id":"0123456789ab","profiles":[{"inputs":[)" + narrow + "," + narrow + R"(]},{"inputs":[)" + wide +
         "," + wide + "]}]}}";
}

class DeviceCaller {
 public:
  using Error = executorch::runtime::Error;
  static constexpr int kMaxRows = 16;

  // What the caller sees of the outputs.
  struct Seen {
    std::vector<int> rows;
    std::vector<std::vector<float>> data;
    bool operator==(const Seen& other) const { return rows == other.rows && data == other.data; }
  };

  // Of `places`, the first is that of the inputs and the second that of the outputs.
  explicit DeviceCaller(Place inputs = Place::kDevice, Place outputs = Place::kDevice, int device = 0)
      : delegate(fake_blob(two_by_two_metadata())) {
    fake_log() = {};
    fake_log().device = FakeCuda::device(device);
    register_fake_engine();
    for (int k = 0; k < 4; ++k) {
      memory.push_back(std::make_unique<Block<float>>(kMaxRows * 2, k < 2 ? inputs : outputs, device));
      tensors.push_back(executorch::extension::from_blob(memory.back()->data(), {kMaxRows, 2}));
    }
  }

  Error load(const char* level = "off", bool use_graphs = false) {
    executorch::runtime::BackendOptions<2> options;
    if (options.set_option("torchtrt_profile_level", level) != Error::Ok ||
        options.set_option(kCudaGraphsKey, use_graphs) != Error::Ok) {
      return Error::Internal;
    }
    const auto view = options.view();
    return delegate.init({view.data(), view.size()});
  }

  // Gives the inputs values of their own, and the outputs -1.
  Error run(int rows, executorch::runtime::EventTracer* tracer = nullptr) { return run_on(delegate, rows, tracer); }
  Error run_on(Delegate& other, int rows, executorch::runtime::EventTracer* tracer = nullptr) {
    for (int k = 0; k < 4; ++k) {
      memory[k]->fill(k < 2 ? ++next_value : -1.0f);
    }
    return call(other, rows, tracer);
  }

  // With the inputs and outputs as they are.
  Error run_again(int rows, executorch::runtime::EventTracer* tracer = nullptr) { return call(delegate, rows, tracer); }

  Seen seen() const {
    Seen out;
    for (int k = 2; k < 4; ++k) {
      out.rows.push_back(static_cast<int>(tensors[k]->size(0)));
      out.data.push_back(memory[k]->values());
    }
    return out;
  }

  // Whether the outputs are what the inputs of the last call give, and no more is written.
  bool right() const {
    for (int k = 2; k < 4; ++k) {
      const auto rows = static_cast<std::size_t>(tensors[k - 2]->size(0));
      std::vector<float> expected(kMaxRows * 2, -1.0f);
      std::copy_n(memory[k - 2]->begin(), rows * 2, expected.begin());
      if (tensors[k]->size(0) != tensors[k - 2]->size(0) || memory[k]->values() != expected) {
        return false;
      }
    }
    return true;
  }

  // Nothing of the call has reached the outputs.
  bool untouched() const {
    const auto is_untouched = [](float value) { return value == -1.0f; };
    return std::all_of(memory[2]->begin(), memory[2]->end(), is_untouched) &&
           std::all_of(memory[3]->begin(), memory[3]->end(), is_untouched);
  }

  float next_value = 0.0f;
  std::vector<std::unique_ptr<Block<float>>> memory;
  std::vector<executorch::extension::TensorPtr> tensors;
  Delegate delegate;

 private:
  Error call(Delegate& other, int rows, executorch::runtime::EventTracer* tracer) {
    std::vector<Delegate::EValue> values;
    for (int k = 0; k < 4; ++k) {
      if (k < 2) {
        tensors[k] = executorch::extension::from_blob(memory[k]->data(), {rows, 2});
      }
      values.emplace_back(*tensors[k]);
    }
    std::vector<Delegate::EValue*> args;
    for (Delegate::EValue& value : values) {
      args.push_back(&value);
    }
    return other.execute(args, tracer);
  }
};

// A caller's own stream, named for this thread's calls.
class OwnStream {
 public:
  explicit OwnStream(void* created = fake_cuda_stream_create(0)) : handle(created), guard_(handle) {}
  ~OwnStream() { fake_cuda_stream_destroy(handle); }

  void* const handle;

 private:
  CudaStreamGuard guard_;
};

}  // namespace executorch_tensorrt::testing
