#include "bindings/python_engine.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "device/caller_stream.h"
#include "device/cuda.h"
#include "engines/registry.h"

namespace nb = nanobind;

namespace executorch_tensorrt {
namespace {

Status status_of(const nb::python_error& error) {
  const StatusCode code = error.matches(PyExc_ValueError)    ? StatusCode::kInvalidProgram
                          : error.matches(PyExc_MemoryError) ? StatusCode::kOutOfMemory
                                                             : StatusCode::kInternal;
  return {code, nb::cast<std::string>(nb::str(error.value()))};
}

thread_local InterruptionScope* current_scope = nullptr;

// With the GIL, whoever has it now; Python's exceptions as a Status.
template <typename Function>
Status in_python(Function&& function) {
  const nb::gil_scoped_acquire gil;
  try {
    function();
    return {};
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) {
      InterruptionScope::keep_current_exception();
    }
    return status_of(error);
  } catch (const nb::cast_error&) {
    return {StatusCode::kInternal, "an engine's runtime returned a value of the wrong type"};
  }
}

// Ends with the GIL; when Python has ended before, not at all.
class PythonObject {
 public:
  explicit PythonObject(nb::object object) : object_(std::move(object)) {}
  ~PythonObject() {
    if (!nb::is_alive()) {
      object_.release();
      return;
    }
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }
  PythonObject(const PythonObject&) = delete;
  PythonObject& operator=(const PythonObject&) = delete;

  const nb::object& operator*() const { return object_; }

 private:
  nb::object object_;
};

nb::tuple tuple_of(const Shape& shape) {
  nb::list sizes;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    sizes.append(shape[d]);
  }
  return nb::tuple(sizes);
}

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

class PythonContext final : public ExecutionContext {
 public:
  // With the GIL.
  PythonContext(nb::object context, std::size_t profile)
      : enqueue_(context.attr("enqueue")),
        context_(std::move(context)),
        profile_suffix_(" [profile " + std::to_string(profile) + "]") {}

  Status set_activation_memory(const ActivationMemory& memory) override {
    return in_python([&] { (*context_).attr("set_activation_memory")(number(memory.data), memory.nbytes); });
  }

  Status set_input_shape(std::size_t input, const Shape& shape) override {
    return in_python([&] { (*context_).attr("set_input_shape")(input, tuple_of(shape)); });
  }

  Status infer_output_shapes(std::vector<Shape>& outputs) override {
    return in_python([&] {
      outputs.clear();
      for (const auto& sizes :
           nb::cast<std::vector<std::vector<std::int64_t>>>((*context_).attr("infer_output_shapes")())) {
        outputs.push_back(make_shape(sizes));
      }
    });
  }

  Status set_input_address(std::size_t input, const void* data) override {
    return in_python([&] { (*context_).attr("set_input_address")(input, number(data)); });
  }

  Status set_output_address(std::size_t output, void* data, std::size_t) override {
    return in_python([&] { (*context_).attr("set_output_address")(output, number(data)); });
  }

  Status enqueue(void* stream, bool) override {
    return in_python([&] { (*enqueue_)(number(stream)); });
  }

  Status take_layers(LayerRecords& layers) override {
    return in_python([&] {
      std::uint64_t now = 0;
      for (auto& [name, ms] :
           nb::cast<std::vector<std::tuple<std::string, double>>>((*context_).attr("take_layers")())) {
        const std::uint64_t end = now + static_cast<std::uint64_t>(ms * 1e6);
        layers.push_back({without_profile(std::move(name)), now, end, Clock::kDevice});
        now = end;
      }
    });
  }

 private:
  // TensorRT marks the layers of all profiles but the first.
  std::string without_profile(std::string name) const {
    const std::size_t at = name.size() - std::min(name.size(), profile_suffix_.size());
    if (name.compare(at, std::string::npos, profile_suffix_) == 0) {
      name.resize(at);
    }
    return name;
  }

  PythonObject enqueue_;
  PythonObject context_;
  std::string profile_suffix_;
};

ProfileTable table_of(const nb::object& engine, const EngineMetadata& metadata, Status& status) {
  using Dims = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;
  std::vector<ProfileRanges> profiles;
  for (const auto& inputs : nb::cast<std::vector<std::vector<Dims>>>(engine.attr("profiles"))) {
    ProfileRanges& profile = profiles.emplace_back();
    for (const Dims& dims : inputs) {
      InputRanges& ranges = profile.emplace_back();
      for (const auto& [min, opt, max] : dims) {
        ranges.push_back({min, opt, max});
      }
    }
  }
  std::vector<std::string> names;
  for (const Binding& input : metadata.inputs) {
    names.push_back(input.name);
  }
  Result<ProfileTable> table = ProfileTable::create(std::move(names), std::move(profiles));
  status = table.ok() ? Status() : table.status();
  return table.ok() ? std::move(*table) : *ProfileTable::create({}, {{}});
}

class PythonEngine final : public Engine {
 public:
  // With the GIL.
  PythonEngine(std::string kind, const Cuda& cuda, int device, nb::object engine, const EngineMetadata& metadata,
               Status& status)
      : kind_(std::move(kind)),
        cuda_(cuda),
        device_(device),
        profiles_(table_of(engine, metadata, status)),
        narrows_int64_(nb::cast<bool>(engine.attr("narrows_int64"))),
        engine_(engine) {
    for (const auto& name : nb::cast<std::vector<std::string>>(engine.attr("types"))) {
      types_.push_back(scalar_type_from_name(name));
    }
  }

  std::string_view kind() const override { return kind_; }
  const ProfileTable& profiles() const override { return profiles_; }
  std::vector<ScalarType> binding_types() const override { return types_; }
  std::optional<int> device() const override { return device_; }
  bool narrows_int64() const override { return narrows_int64_; }

  Result<std::size_t> activation_size(std::size_t profile) const override {
    std::size_t size = 0;
    Status status = in_python([&] { size = nb::cast<std::size_t>((*engine_).attr("activation_size")(profile)); });
    if (!status.ok()) {
      return status;
    }
    return std::max<std::size_t>(size, 1);  // TensorRT wants an address
  }

  Result<std::unique_ptr<ExecutionContext>> create_context(std::size_t profile, bool collect_layers,
                                                           const ActivationMemory& memory) override {
    const CudaStream stream = per_thread_stream();
    std::unique_ptr<ExecutionContext> context;
    Status status = in_python([&] {
      nb::object made = (*engine_).attr("create_context")(profile, collect_layers, number(stream), number(memory.data),
                                                          memory.nbytes);
      context = std::make_unique<PythonContext>(std::move(made), profile);
    });
    if (status.ok()) {
      status = cuda_.check(cuda_.StreamSynchronize(stream), "choosing an optimization profile");
    }
    if (!status.ok()) {
      return status;
    }
    return context;
  }

 private:
  std::string kind_;
  const Cuda& cuda_;
  int device_;
  ProfileTable profiles_;
  std::vector<ScalarType> types_;
  bool narrows_int64_;
  PythonObject engine_;
};

Result<std::unique_ptr<Engine>> load(const std::string& kind, const nb::object& load, const EngineSource& source) {
  const Result<const Cuda*> found = Cuda::get();
  if (!found.ok()) {
    return found.status();
  }
  const Cuda& cuda = **found;
  const EngineMetadata& metadata = *source.metadata;
  if (Status status = cuda.check_device(metadata.device_id); !status.ok()) {
    return status;
  }
  if (Status status = check_not_captured(cuda); !status.ok()) {
    return status;
  }
  const CudaDeviceScope scope(cuda, metadata.device_id);
  if (!scope.status().ok()) {
    return scope.status();
  }
  std::unique_ptr<Engine> engine;
  Status table;
  Status status = in_python([&] {
    const auto names = [](const std::vector<Binding>& bindings) {
      nb::list out;
      for (const Binding& binding : bindings) {
        out.append(binding.name);
      }
      return out;
    };
    char* const bytes = static_cast<char*>(const_cast<void*>(source.data));
    const nb::object plan = nb::steal(PyMemoryView_FromMemory(bytes, static_cast<Py_ssize_t>(source.size), PyBUF_READ));
    const std::string builder = metadata.record ? metadata.record->builder : "";
    nb::object made = load(plan, builder, names(metadata.inputs), names(metadata.outputs));
    engine = std::make_unique<PythonEngine>(kind, cuda, metadata.device_id, std::move(made), metadata, table);
  });
  if (status.ok()) {
    status = table;
  }
  if (!status.ok()) {
    return Status(status.code(), status.message() + "; this machine has " + cuda.describe(metadata.device_id));
  }
  return engine;
}

}  // namespace

InterruptionScope::InterruptionScope() : previous_(std::exchange(current_scope, this)) {}

InterruptionScope::~InterruptionScope() { current_scope = previous_; }

void InterruptionScope::keep_current_exception() {
  if (current_scope != nullptr) {
    current_scope->caught_ = std::current_exception();
  }
}

void InterruptionScope::raise() {
  if (caught_) {
    std::rethrow_exception(std::exchange(caught_, nullptr));
  }
}

void register_python_runtime(const std::string& kind, nb::callable load_function) {
  const auto function = std::make_shared<PythonObject>(std::move(load_function));
  register_engine_runtime(kind,
                          [kind, function](const EngineSource& source) { return load(kind, **function, source); });
}

}  // namespace executorch_tensorrt
