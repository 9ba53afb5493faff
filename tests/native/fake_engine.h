// An engine that computes nothing and counts what the delegate does to it. It fails where a test tells it to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engines/registry.h"

namespace executorch_tensorrt::testing {

// Where engines work in place of the host, as of their loading. See fake_cuda.h.
struct FakeDevice {
  int index = 0;
  std::function<void(void* stream, std::function<void()> work)> enqueue;
  std::function<void*(const void* address, std::size_t nbytes)> at;  // where that work can reach it
};

struct FakeEngineLog {
  int engines = 0;
  int engines_freed = 0;
  int contexts = 0;  // asked for
  int contexts_made = 0;
  int contexts_freed = 0;
  int contexts_with_layers = 0;
  int set_input_shape = 0;
  int infer = 0;
  int set_input_address = 0;
  int set_output_address = 0;
  int enqueue = 0;
  int outputs_kept = 0;               // by the engine: it was given no memory for them
  std::string fail_at;                // "load", "context", "shape", "infer", "input", "output", "enqueue", "throw"
  int fail_after = 0;                 // calls of that kind succeed before one fails
  std::function<void()> throw_there;  // in place of a returned failure
  int failed = 0;
  std::map<std::size_t, Shape> infer_as;  // by output, in place of its input's shape
  std::size_t first_grown = SIZE_MAX;  // from this output on, floats are their input plus one wherever they are written
  std::optional<FakeDevice> device;
  bool narrows_int64 = false;
  int disturbed_at_work = 0;  // contexts that ended, or were asked for layers, before their work on a device was done
};

// One per thread.
inline FakeEngineLog& fake_log() {
  static thread_local FakeEngineLog log;
  return log;
}

// What every call does inside the engine, on any thread. To be set while no call runs.
inline std::function<void()>& on_fake_enqueue() {
  static std::function<void()> hook;
  return hook;
}

inline Status fake_failure(const char* at) {
  FakeEngineLog& log = fake_log();
  if (log.fail_at != at || log.fail_after-- > 0) {
    return {};
  }
  log.fail_after = 0;
  ++log.failed;
  if (log.throw_there) {
    log.throw_there();
  }
  return {StatusCode::kInternal, std::string("fake failure at ") + at};
}

// Copies input k to output k, which has the same shape; outputs without an input of their own get the last one. Floats
// that it writes in place of their input grow by one.
class FakeContext final : public ExecutionContext {
 public:
  FakeContext(std::size_t num_inputs, std::size_t num_outputs, bool collect_layers, std::optional<FakeDevice> device)
      : collect_layers_(collect_layers),
        device_(std::move(device)),
        shapes_(num_inputs),
        inputs_(num_inputs),
        outputs_(num_outputs) {
    ++fake_log().contexts_made;
  }
  ~FakeContext() override {
    ++fake_log().contexts_freed;
    fake_log().disturbed_at_work += is_at_work();
  }

  Status set_input_shape(std::size_t input, const Shape& shape) override {
    ++fake_log().set_input_shape;
    shapes_[input] = shape;
    return fake_failure("shape");
  }
  Status infer_output_shapes(std::vector<Shape>& outputs) override {
    ++fake_log().infer;
    outputs.clear();
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const auto found = fake_log().infer_as.find(o);
      outputs.push_back(found != fake_log().infer_as.end() ? found->second : shapes_[std::min(o, shapes_.size() - 1)]);
    }
    return fake_failure("infer");
  }
  Status set_input_address(std::size_t input, const void* data) override {
    ++fake_log().set_input_address;
    inputs_[input] = data;
    return fake_failure("input");
  }
  Status set_output_address(std::size_t output, void* data, std::size_t nbytes) override {
    ++fake_log().set_output_address;
    outputs_[output] = {data, nbytes};
    return fake_failure("output");
  }
  Status enqueue(void* stream, bool collect_layers) override {
    ++fake_log().enqueue;
    if (on_fake_enqueue()) {
      on_fake_enqueue()();
    }
    if (device_) {
      put_on(stream);  // also where it fails below: it may come to that when the work is half on its way
    }
    if (fake_log().fail_at == "throw") {
      throw std::runtime_error("fake exception");
    }
    if (Status status = fake_failure("enqueue"); !status.ok()) {
      return status;
    }
    if (collect_layers && collect_layers_) {
      const Clock clock = device_ ? Clock::kDevice : Clock::kHost;
      layers_ = {{"copy", 10, 20, clock, 0}, {"copy", 20, 30, clock, 1}};
    }
    if (!device_) {
      work(inputs_, outputs_, {});
    }
    return {};
  }
  Status take_layers(LayerRecords& layers) override {
    fake_log().disturbed_at_work += is_at_work();
    layers.insert(layers.end(), layers_.begin(), layers_.end());
    layers_.clear();
    return {};
  }

 private:
  struct Output {
    void* data = nullptr;
    std::size_t nbytes = 0;
  };
  using At = std::function<void*(const void*, std::size_t)>;

  // Or in a graph.
  bool is_at_work() const { return at_work_.use_count() > 1; }

  // With what is set now: the context may be set otherwise before the work happens.
  void put_on(void* stream) {
    device_->enqueue(stream, [at_work = at_work_, at = device_->at, inputs = inputs_, outputs = outputs_] {
      work(inputs, outputs, at);
    });
  }

  static void work(const std::vector<const void*>& inputs, const std::vector<Output>& outputs, const At& at) {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const auto [data, nbytes] = outputs[o];
      const void* source = inputs[std::min(o, inputs.size() - 1)];
      if (data == nullptr) {
        ++fake_log().outputs_kept;
        continue;
      }
      void* to = at ? at(data, nbytes) : data;
      if (data != source) {
        std::memcpy(to, at ? at(source, nbytes) : source, nbytes);
      }
      if (data == source || o >= fake_log().first_grown) {
        auto* floats = static_cast<float*>(to);
        std::for_each(floats, floats + nbytes / sizeof(float), [](float& value) { value += 1.0f; });
      }
    }
  }

  bool collect_layers_;
  std::optional<FakeDevice> device_;
  std::shared_ptr<void> at_work_ = std::make_shared<char>();  // held by all work on its way
  LayerRecords layers_;
  std::vector<Shape> shapes_;
  std::vector<const void*> inputs_;
  std::vector<Output> outputs_;
};

class FakeEngine final : public Engine {
 public:
  FakeEngine(std::string kind, ProfileTable profiles, std::size_t num_outputs, std::vector<ScalarType> types = {})
      : kind_(std::move(kind)), profiles_(std::move(profiles)), num_outputs_(num_outputs), types_(std::move(types)) {
    ++fake_log().engines;
  }
  ~FakeEngine() override { ++fake_log().engines_freed; }

  std::string_view kind() const override { return kind_; }
  const ProfileTable& profiles() const override { return profiles_; }
  std::vector<ScalarType> binding_types() const override { return types_; }
  std::optional<int> device() const override { return device_ ? std::optional<int>(device_->index) : std::nullopt; }
  bool narrows_int64() const override { return narrows_int64_; }
  Result<std::unique_ptr<ExecutionContext>> create_context(std::size_t, bool collect_layers,
                                                           const ActivationMemory&) override {
    ++fake_log().contexts;
    fake_log().contexts_with_layers += collect_layers;
    if (Status status = fake_failure("context"); !status.ok()) {
      return status;
    }
    return std::unique_ptr<ExecutionContext>(
        new FakeContext(profiles_.num_inputs(), num_outputs_, collect_layers, device_));
  }

 private:
  std::string kind_;
  ProfileTable profiles_;
  std::size_t num_outputs_;
  std::vector<ScalarType> types_;
  std::optional<FakeDevice> device_ = fake_log().device;
  bool narrows_int64_ = fake_log().narrows_int64;
};

// What the runtimes of a kind load from now on, whatever the engine's bytes: the profiles and element types that an
// engine reports. Without profiles, those of the blob's record.
struct Reported {
  std::optional<ProfileTable> profiles;
  std::vector<ScalarType> types;
};

inline void register_fake_engine(const std::string& kind = "fake", Reported reported = {}) {
  register_engine_runtime(kind, [=](const EngineSource& source) -> Result<std::unique_ptr<Engine>> {
    const EngineMetadata& metadata = *source.metadata;
    if (Status status = fake_failure("load"); !status.ok()) {
      return status;
    }
    return std::unique_ptr<Engine>(new FakeEngine(kind,
                                                  reported.profiles ? *reported.profiles : *metadata.record->profiles,
                                                  metadata.outputs.size(), reported.types));
  });
}

// x float32 [rows, 2] -> y, of engine kind "fake", profile 0: 1..4 rows, profile 1: 3..16.
inline const std::string kFakeMetadata =
    R"({"io_bindings":[{"name":"x","dtype":"float32","is_input":true},{"name":"y","dtype":"float32","is_input":false}],)"
    R"("executorch_tensorrt":{"version":1,"engine_kind":"fake","engine_id":"0123456789ab","profiles":[)"
    R"({"inputs":[{"min":[1,2],"opt":[2,2],"max":[4,2]}]},{"inputs":[{"min":[3,2],"opt":[8,2],"max":[16,2]}]}]}})";

// A TR01 blob.
inline std::string fake_blob(const std::string& metadata = kFakeMetadata) {
  const std::uint32_t header[4] = {0, 32, static_cast<std::uint32_t>(metadata.size()),
                                   static_cast<std::uint32_t>((32 + metadata.size() + 15) / 16 * 16)};
  std::string blob(header[3], '\0');
  const std::uint64_t engine_size = 1;
  std::memcpy(blob.data(), header, sizeof(header));
  std::memcpy(blob.data(), "TR01", 4);
  std::memcpy(blob.data() + 16, &engine_size, 8);
  blob[24] = 1;
  std::memcpy(blob.data() + 32, metadata.data(), metadata.size());
  return blob + "e";
}

}  // namespace executorch_tensorrt::testing
