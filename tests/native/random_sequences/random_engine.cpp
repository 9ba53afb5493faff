#include "random_engine.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../fakes/cudart.h"
#include "../fake_engine.h"
#include "engines/registry.h"

namespace executorch_tensorrt::testing {

float x_of(float a, float b, int profile, int engine) {
  return std::fmod(a + 2 * b + static_cast<float>(100 * (profile + 1) + engine), 65521.0f);
}
float y_of(float b, float state, int profile, int engine) {
  return std::fmod(b + 3 * state + static_cast<float>(10 * (profile + 1) + engine), 65519.0f);
}
float next_state_of(float state, float first_of_a, int profile, int engine) {
  return std::fmod(3 * state + first_of_a + static_cast<float>(profile + engine + 1), 8191.0f);
}

RandomEngineLog& random_engine_log() {
  static RandomEngineLog log;
  return log;
}

namespace {

void misused(const std::string& how) { random_engine_log().misused += how + "; "; }

Status failure(const char* at) {
  RandomEngineLog& log = random_engine_log();
  if (log.fail_at != at || log.fail_after-- > 0) {
    return {};
  }
  log.fail_at.clear();
  log.failed = true;
  if (log.fail_how == 2) {
    throw std::bad_alloc();
  }
  if (log.fail_how == 3) {
    throw std::runtime_error("an exception at " + std::string(at));
  }
  return {log.fail_how == 1 ? StatusCode::kOutOfMemory : StatusCode::kInternal, "a failure at " + std::string(at)};
}

// What a profile needs: two intermediate values of its largest call, and a state. No two need the same.
std::size_t activations_of(std::size_t profile) {
  return sizeof(float) * static_cast<std::size_t>(2 * kProfiles[profile].max * kColumns + kStateSize);
}

struct Bindings {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* state = nullptr;  // null without one
  void* x = nullptr;
  void* y = nullptr;
  void* next_state = nullptr;
};

float* at(const void* data, int count) {
  return static_cast<float*>(fake_cuda_at(data, sizeof(float) * static_cast<std::size_t>(count)));
}

// The works of a call, with what is set when it is enqueued.
struct Works {
  Bindings io;
  void* activations;
  int size;  // of a, b, x and y
  int profile;
  int engine;

  float* first() const { return at(activations, size); }
  float* second() const { return at(static_cast<float*>(activations) + size, size); }
  float* third() const { return at(static_cast<float*>(activations) + 2 * size, kStateSize); }

  void take_state() const {
    const float zeros[kStateSize] = {};
    std::memcpy(third(), io.state != nullptr ? at(io.state, kStateSize) : zeros, sizeof(zeros));
  }
  void first_half() const {
    const float *a = at(io.a, size), *b = at(io.b, size);
    for (int k = 0; k < size; ++k) first()[k] = a[k] + 2 * b[k];
  }
  void second_half() const {
    const float* b = at(io.b, size);
    for (int k = 0; k < size; ++k) second()[k] = y_of(b[k], third()[k % kStateSize], profile, engine);
  }
  void finish() const {
    float *x = at(io.x, size), *y = at(io.y, size);
    for (int k = 0; k < size; ++k) x[k] = x_of(first()[k], 0, profile, engine);
    std::memcpy(y, second(), sizeof(float) * static_cast<std::size_t>(size));
    if (io.next_state != nullptr) {
      // The first of a, out of what is left of it.
      const float first_of_a = first()[0] - 2 * at(io.b, size)[0];
      float* next = at(io.next_state, kStateSize);
      for (int k = 0; k < kStateSize; ++k) next[k] = next_state_of(third()[k], first_of_a, profile, engine);
    }
  }
};

class RandomContext final : public ExecutionContext {
 public:
  RandomContext(const ActivationMemory& activations, std::size_t profile, int engine, bool has_state,
                bool collects_layers)
      : profile_(profile), engine_(engine), has_state_(has_state), collects_layers_(collects_layers) {
    take(activations);
  }
  ~RandomContext() override { check_idle("ends"); }

  Status set_activation_memory(const ActivationMemory& activations) override {
    activations_ = {};
    ran_with_.reset();
    if (Status status = failure("memory"); !status.ok()) {
      return status;
    }
    take(activations);
    return {};
  }
  Status set_input_shape(std::size_t input, const Shape& shape) override {
    const bool is_state = input == 2;
    const RowsOfProfile& rows = kProfiles[profile_];
    if (!is_state && (shape.rank() != 2 || shape[0] < rows.min || shape[0] > rows.max || shape[1] != kColumns)) {
      misused("a shape outside the profile is set");
    }
    shapes_set_ &= ~(1u << input);
    ran_with_.reset();
    if (Status status = failure("shape"); !status.ok()) {
      return status;
    }
    shape_of_[input] = shape;
    shapes_set_ |= 1u << input;
    return {};
  }
  Status infer_output_shapes(std::vector<Shape>& outputs) override {
    if (shapes_set_ != all_inputs()) {
      misused("output shapes are asked for before all inputs have theirs");
    }
    outputs = {shape_of_[0], shape_of_[0]};
    if (has_state_) {
      outputs.push_back(shape_of_[2]);
    }
    return failure("infer");
  }
  Status set_input_address(std::size_t input, const void* data) override {
    const void*& address = input == 0 ? io_.a : input == 1 ? io_.b : io_.state;
    address = nullptr;
    if (Status status = failure("input"); !status.ok()) {
      return status;
    }
    address = data;
    return {};
  }
  Status set_output_address(std::size_t output, void* data, std::size_t nbytes) override {
    void*& address = output == 0 ? io_.x : output == 1 ? io_.y : io_.next_state;
    address = nullptr;
    if (Status status = failure("output"); !status.ok()) {
      return status;
    }
    address = data;
    nbytes_[output] = nbytes;
    return {};
  }
  Status enqueue(void* stream, bool collect_layers) override {
    const int size = static_cast<int>(shape_of_[0][0]) * kColumns;
    const std::size_t nbytes = static_cast<std::size_t>(size) * sizeof(float);
    if (shapes_set_ != all_inputs() || io_.a == nullptr || io_.b == nullptr || io_.x == nullptr || io_.y == nullptr ||
        (has_state_ && (io_.state == nullptr || io_.next_state == nullptr)) || nbytes_[0] != nbytes ||
        nbytes_[1] != nbytes || !(shape_of_[0] == shape_of_[1]) || activations_.data == nullptr) {
      misused("a call is enqueued with what does not fit");
    }
    // As TensorRT wants it.
    if (fake_cuda_capturing(stream) != 0 && ran_with_ != activations_.data) {
      misused("a call is captured behind none of its shapes and with its activation memory");
    }
    if (std::exchange(is_broken_, true)) {
      misused("a context that failed is used again");
    }
    const Works works{io_, activations_.data, size, static_cast<int>(profile_), engine_};
    put(stream, [works] { works.take_state(); });
    put(stream, [works] { works.first_half(); });
    if (Status status = failure("enqueue"); !status.ok()) {
      return status;  // half on its way
    }
    put(stream, [works] { works.second_half(); });
    put(stream, [works] { works.finish(); });
    if (collect_layers && collects_layers_) {
      layers_ = {{"halves", 10, 20, Clock::kDevice, 0}, {"whole", 20, 30, Clock::kDevice, 1}};
    }
    is_broken_ = false;
    ran_with_ = activations_.data;
    return {};
  }
  Status take_layers(LayerRecords& layers) override {
    check_idle("is asked for layers");
    layers.insert(layers.end(), layers_.begin(), layers_.end());
    layers_.clear();
    return failure("layers");
  }

 private:
  void put(void* stream, std::function<void()> work) {
    struct Queued {
      std::function<void()> work;
      std::shared_ptr<void> at_work;
    };
    const auto run = [](void* queued) { static_cast<Queued*>(queued)->work(); };
    const auto release = [](void* queued) { delete static_cast<Queued*>(queued); };
    ++random_engine_log().enqueued;
    fake_cuda_enqueue(stream, run, new Queued{std::move(work), at_work_}, release);
  }

  void take(const ActivationMemory& activations) {
    if (activations.data == nullptr || activations.nbytes < activations_of(profile_)) {
      misused("a context is given less activation memory than its profile needs");
    }
    activations_ = activations;
  }

  unsigned all_inputs() const { return has_state_ ? 7u : 3u; }

  // Also a graph that has its works keeps it at work.
  void check_idle(const std::string& what) const {
    if (at_work_.use_count() > 1) {
      misused("a context " + what + " before its work is done, or while a graph has it");
    }
  }

  ActivationMemory activations_;
  const std::size_t profile_;
  const int engine_;
  const bool has_state_;
  const bool collects_layers_;
  std::shared_ptr<void> at_work_ = std::make_shared<char>();
  LayerRecords layers_;
  Bindings io_;
  Shape shape_of_[3];
  unsigned shapes_set_ = 0;
  bool is_broken_ = false;         // by what failed
  std::optional<void*> ran_with_;  // the activation memory, with the shapes that are set
  std::size_t nbytes_[3] = {};
};

class RandomEngine final : public Engine {
 public:
  RandomEngine(ProfileTable profiles, int device, int engine, bool has_state)
      : profiles_(std::move(profiles)), device_(device), engine_(engine), has_state_(has_state) {}

  std::string_view kind() const override { return "random"; }
  const ProfileTable& profiles() const override { return profiles_; }
  std::optional<int> device() const override { return device_; }
  Result<std::size_t> activation_size(std::size_t profile) const override {
    if (Status status = failure("memory"); !status.ok()) {
      return status;
    }
    return activations_of(profile);
  }
  Result<std::unique_ptr<ExecutionContext>> create_context(std::size_t profile, bool collect_layers,
                                                           const ActivationMemory& activations) override {
    if (fake_cuda_current_device() != device_) {
      misused("an engine is called while another device is current");
    }
    if (Status status = failure("context"); !status.ok()) {
      return status;
    }
    return std::unique_ptr<ExecutionContext>(
        new RandomContext(activations, profile, engine_, has_state_, collect_layers));
  }

 private:
  ProfileTable profiles_;
  const int device_;
  const int engine_;
  const bool has_state_;
};

}  // namespace

std::string random_engine_blob(int engine, StateKind state, const std::string& initial_hex) {
  const bool has_state = state != StateKind::kNone;
  const auto binding = [](const char* name, bool is_input) {
    return std::string(R"({"name":")") + name + R"(","dtype":"float32","is_input":)" + (is_input ? "true}" : "false}");
  };
  const auto rows = [](int count) { return "[" + std::to_string(count) + "," + std::to_string(kColumns) + "]"; };
  std::string profiles;
  for (const RowsOfProfile& profile : kProfiles) {
    const std::string range =
        R"({"min":)" + rows(profile.min) + R"(,"opt":)" + rows(profile.max) + R"(,"max":)" + rows(profile.max) + "}";
    profiles += (profiles.empty() ? "" : ",") + std::string(R"({"inputs":[)") + range + "," + range +
                (has_state ? R"(,{"min":[2],"opt":[2],"max":[2]})" : "") + "]}";
  }
  const std::string inputs =
      binding("a", true) + "," + binding("b", true) + (has_state ? "," + binding("kv", true) : "");
  const std::string outputs =
      binding("x", false) + "," + binding("y", false) + (has_state ? "," + binding("kv_out", false) : "");
  const std::string alias = state == StateKind::kInPlace ? R"({"output":"kv_out","input":"kv"})" : "";
  const std::string owned = R"({"name":"kv","input":"kv","initial":")" + initial_hex + '"' +
                            (state == StateKind::kTwoBlocks ? R"(,"output":"kv_out"})" : "}");
  const std::string arguments =
      has_state ? R"("inputs":[0,1,null],"outputs":[2,3,null])" : R"("inputs":[0,1],"outputs":[2,3])";
  const std::string metadata =
      R"({"io_bindings":[)" + inputs + "," + outputs + R"(],"aliased_io":[)" + alias +
      R"(],"executorch_tensorrt":{"version":1,"engine_kind":"random","engine_id":"0123456789ab","profiles":[)" +
      profiles + R"(],"arguments":{)" + arguments + R"(},"state":[)" + (has_state ? owned : "") + "]}}";
  std::string blob = fake_blob(metadata);
  blob.back() = static_cast<char>(engine);
  return blob;
}

void register_random_engine(int device) {
  register_engine_runtime("random", [device](const EngineSource& source) -> Result<std::unique_ptr<Engine>> {
    if (Status status = failure("load"); !status.ok()) {
      return status;
    }
    const int engine = *static_cast<const char*>(source.data);
    return std::unique_ptr<Engine>(
        new RandomEngine(*source.metadata->record->profiles, device, engine, source.metadata->inputs.size() > 2));
  });
}

}  // namespace executorch_tensorrt::testing
