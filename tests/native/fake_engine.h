// An engine that computes nothing and counts what the delegate does to it. It fails where a test tells it to.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engines/registry.h"

namespace executorch_tensorrt::testing {

struct FakeEngineLog {
  int engines = 0;
  int engines_freed = 0;
  int contexts = 0;
  int contexts_with_layers = 0;
  int set_input_shape = 0;
  int infer = 0;
  int set_input_address = 0;
  int set_output_address = 0;
  int enqueue = 0;
  std::string fail_at;  // "context", "shape", "infer", "input", "output", "enqueue", "throw"
};

inline FakeEngineLog& fake_log() {
  static FakeEngineLog log;
  return log;
}

inline Status fake_failure(const char* at) {
  return fake_log().fail_at == at ? Status(StatusCode::kInternal, std::string("fake failure at ") + at) : Status();
}

// Copies input 0 to output 0, which has the same shape.
class FakeContext final : public ExecutionContext {
 public:
  explicit FakeContext(bool collect_layers) : collect_layers_(collect_layers) {}

  Status set_input_shape(std::size_t, const Shape& shape) override {
    ++fake_log().set_input_shape;
    shape_ = shape;
    return fake_failure("shape");
  }
  Status infer_output_shapes(std::vector<Shape>& outputs) override {
    ++fake_log().infer;
    outputs = {shape_};
    return fake_failure("infer");
  }
  Status set_input_address(std::size_t, const void* data) override {
    ++fake_log().set_input_address;
    input_ = data;
    return fake_failure("input");
  }
  Status set_output_address(std::size_t, void* data, std::size_t nbytes) override {
    ++fake_log().set_output_address;
    output_ = data;
    nbytes_ = nbytes;
    return fake_failure("output");
  }
  Status enqueue(LayerRecords* layers) override {
    ++fake_log().enqueue;
    if (fake_log().fail_at == "throw") {
      throw std::runtime_error("fake exception");
    }
    if (Status status = fake_failure("enqueue"); !status.ok()) {
      return status;
    }
    std::memcpy(output_, input_, nbytes_);
    if (layers != nullptr && collect_layers_) {
      layers->push_back({"copy", 10, 20, Clock::kHost, 0});
      layers->push_back({"copy", 20, 30, Clock::kHost, 1});
    }
    return {};
  }

 private:
  bool collect_layers_;
  Shape shape_;
  const void* input_ = nullptr;
  void* output_ = nullptr;
  std::size_t nbytes_ = 0;
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(ProfileTable profiles) : profiles_(std::move(profiles)) { ++fake_log().engines; }
  ~FakeEngine() override { ++fake_log().engines_freed; }

  std::string_view kind() const override { return "fake"; }
  const ProfileTable& profiles() const override { return profiles_; }
  Result<std::unique_ptr<ExecutionContext>> create_context(std::size_t, bool collect_layers) override {
    ++fake_log().contexts;
    fake_log().contexts_with_layers += collect_layers;
    if (Status status = fake_failure("context"); !status.ok()) {
      return status;
    }
    return std::unique_ptr<ExecutionContext>(new FakeContext(collect_layers));
  }

 private:
  ProfileTable profiles_;
};

inline void register_fake_engine() {
  register_engine_runtime("fake", [](const EngineSource& source) -> Result<std::unique_ptr<Engine>> {
    return std::unique_ptr<Engine>(new FakeEngine(source.metadata->record->profiles));
  });
}

// A TR01 blob of engine kind "fake": x float32 [rows, 2] -> y, profile 0: 1..4 rows, profile 1: 3..16.
inline std::string fake_blob() {
  const std::string metadata =
      R"({"io_bindings":[{"name":"x","dtype":"float32","is_input":true},{"name":"y","dtype":"float32","is_input":false}],)"
      R"("executorch_tensorrt":{"version":1,"engine_kind":"fake","engine_id":"0123456789ab","profiles":[)"
      R"({"inputs":[{"min":[1,2],"opt":[2,2],"max":[4,2]}]},{"inputs":[{"min":[3,2],"opt":[8,2],"max":[16,2]}]}]}})";
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
