#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <variant>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/failure.h"
#include "bindings/python_engine.h"
#include "core/memory.h"
#include "process/thread_request.h"
#include "program/checked_module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

using executorch::runtime::BackendOption;
using executorch::runtime::EValue;
using executorch::runtime::Tag;

// Python's options, as ExecuTorch takes them.
std::vector<BackendOption> backend_options(const nb::dict& options) {
  std::vector<BackendOption> out;
  for (const auto& [key, value] : options) {
    std::variant<bool, int, std::string> given;
    if (nb::isinstance<nb::bool_>(value)) {
      given = nb::cast<bool>(value);
    } else if (nb::isinstance<nb::int_>(value)) {
      given = nb::cast<int>(value);
    } else {
      given = nb::cast<std::string>(value);
    }
    out.push_back(value_of(backend_option(nb::cast<std::string>(key), given)));
  }
  return out;
}

class PyModule {
 public:
  PyModule(const std::string& path, const std::string& mode, bool etdump, nb::dict options)
      : options_(backend_options(options)) {
    const CheckedModule::LoadMode load = load_mode(mode);
    module_ = value_of(without_gil([&] { return CheckedModule::open(path, load, etdump); }));
  }

  PyModule(nb::bytes program, bool etdump, nb::dict options) : options_(backend_options(options)) {
    const void* data = program.data();
    const std::size_t size = program.size();
    if (reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0) {
      bytes_ = program;
    } else {
      aligned_ = aligned_bytes<kAlignment>(size);
      if (!aligned_) {
        throw std::bad_alloc();
      }
      std::memcpy(aligned_.get(), data, size);
      data = aligned_.get();
    }
    module_ = value_of(without_gil([&] { return CheckedModule::open(data, size, etdump); }));
  }

  std::vector<std::string> method_names() { return value_of(module_->method_names()); }

  const MethodInfo& method_info(const std::string& name) {
    const auto found = infos_.find(name);
    return found != infos_.end() ? found->second
                                 : infos_.emplace(name, value_of(module_->describe(name))).first->second;
  }

  bool is_method_loaded(const std::string& name) {
    return unlocked([&] { return module_->is_method_loaded(name); });
  }

  // Options of this method on top of the module's.
  void load_method(const std::string& name, const nb::dict& options) {
    const MethodInfo& info = method_info(name);
    std::vector<BackendOption> all = options_;
    for (const BackendOption& option : backend_options(options)) {
      const auto same = [&](const BackendOption& other) { return std::strcmp(other.key, option.key) == 0; };
      if (const auto found = std::find_if(all.begin(), all.end(), same); found != all.end()) {
        *found = option;
      } else {
        all.push_back(option);
      }
    }
    InterruptionScope interruption;
    const Status status = unlocked([&] { return module_->load_method(info, std::move(all)); });
    interruption.raise();
    check(status);
  }

  void share_state(const EngineState& state) {
    unlocked([&] { module_->share_state(state); });
  }

  // False when it was not loaded.
  bool unload_method(const std::string& name) {
    method_info(name);
    return unlocked([&] { return module_->unload_method(name); });
  }

  nb::list execute(const std::string& name, const nb::sequence& args, bool torch_outputs) {
    const MethodInfo& info = method_info(name);
    InterruptionScope interruption;
    std::vector<InputArray> arrays;  // keeps the callers' arrays alive
    std::vector<EValue> inputs = convert_inputs(info, args, arrays);
    const bool device_outputs =
        std::any_of(arrays.begin(), arrays.end(), [](const InputArray& array) { return array.on_device(); });
    std::vector<DeviceOutput> from;
    for (const InputArray& array : arrays) {
      if (array.source().block) {
        from.push_back(array.source());
      }
    }
    std::vector<OutputValue> outputs;
    SelectionCollector collector;
    // Outputs lie in the module's arena, so they are copied under the lock as well.
    const Status status =
        unlocked([&] { return execute_locked(info, std::move(inputs), from, device_outputs, outputs); });
    interruption.raise();
    check(status);
    last_selections_ = collector.take();
    nb::list out;
    for (OutputValue& output : outputs) {
      out.append(to_python(std::move(output), torch_outputs));
    }
    return out;
  }

  std::optional<nb::bytes> take_etdump() {
    if (module_->etdump() == nullptr) {
      throw nb::value_error("this Module records no events: make it with profile_level='phases' or etdump=True");
    }
    const std::optional<std::string> dump = unlocked([&] { return module_->etdump()->take(); });
    return dump ? std::optional(nb::bytes(dump->data(), dump->size())) : std::nullopt;
  }

  const std::vector<Selection>& last_selections() const { return last_selections_; }

  std::size_t events_dropped() {
    return unlocked([&] { return module_->etdump() != nullptr ? module_->etdump()->events_dropped() : 0; });
  }

 private:
  static constexpr std::size_t kAlignment = CheckedModule::kAlignment;

  static CheckedModule::LoadMode load_mode(const std::string& name) {
    if (name == "mmap") return CheckedModule::LoadMode::Mmap;
    if (name == "file") return CheckedModule::LoadMode::File;
    if (name == "mlock") return CheckedModule::LoadMode::MmapUseMlockIgnoreErrors;
    refuse_value("load_mode: got " + quoted(name) + ", allowed 'mmap', 'file', 'mlock'");
  }

  template <typename Function>
  static auto without_gil(Function&& function) -> decltype(function()) {
    const nb::gil_scoped_release release;
    return function();
  }

  // Without the GIL, and one call at a time: ExecuTorch's Module is not thread-safe.
  template <typename Function>
  auto unlocked(Function&& function) -> decltype(function()) {
    return without_gil([&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      return function();
    });
  }

  // By input, the CUDA device that the program wants it on. Loads the method when it was never loaded.
  const std::vector<std::optional<int>>& input_devices(const MethodInfo& info) {
    const auto found = input_devices_.find(info.name);
    if (found != input_devices_.end()) {
      return found->second;
    }
    check(check_device(info));
    std::vector<std::optional<int>> devices(info.inputs.size());
    InterruptionScope interruption;
    const Status status = unlocked([&] {
      Status loaded = load_locked(info);
      for (std::size_t i = 0; loaded.ok() && i < devices.size(); ++i) {
        devices[i] = module_->values(info.name).input_device(i);
      }
      return loaded;
    });
    interruption.raise();
    check(status);
    return input_devices_.emplace(info.name, std::move(devices)).first->second;
  }

  Status load_locked(const MethodInfo& info) {
    return module_->is_method_loaded(info.name) ? Status() : module_->load_method(info, options_);
  }

  Status execute_locked(const MethodInfo& info, std::vector<EValue> inputs, const std::vector<DeviceOutput>& from,
                        bool device_outputs, std::vector<OutputValue>& outputs) {
    // Another thread may have unloaded it.
    if (Status status = load_locked(info); !status.ok()) {
      return status;
    }
    const auto result = module_->execute(info, std::move(inputs), from);
    if (!result.ok()) {
      return result.status();
    }
    const MethodValues& values = module_->values(info.name);
    for (std::size_t o = 0; o < result->size(); ++o) {
      auto output = copy_output((*result)[o], device_outputs ? values.output(o) : DeviceOutput{});
      if (!output.ok()) {
        return output.status();
      }
      outputs.push_back(std::move(*output));
    }
    return {};
  }

  std::vector<EValue> convert_inputs(const MethodInfo& info, const nb::sequence& args,
                                     std::vector<InputArray>& arrays) {
    const std::vector<std::optional<int>>& devices = input_devices(info);
    const std::size_t count = nb::len(args);
    if (count != info.inputs.size()) {
      refuse_value("method " + quoted(info.name) + ": got " + std::to_string(count) + " inputs, allowed " +
                   std::to_string(info.inputs.size()));
    }
    arrays.reserve(count);
    std::vector<EValue> values;
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string label = "method '" + info.name + "' input " + std::to_string(i);
      const nb::object arg = args[i];
      if (info.inputs[i].tag != Tag::Tensor) {
        values.push_back(scalar_input(label, arg, info.inputs[i].tag));
        continue;
      }
      if (!info.inputs[i].tensor) {
        refuse_value(label + " is damaged in the program");
      }
      arrays.push_back(InputArray::from(label, arg, *info.inputs[i].tensor, devices[i]));
      values.emplace_back(arrays.back().tensor());
    }
    return values;
  }

  std::vector<BackendOption> options_;
  nb::object bytes_;
  AlignedBytes<kAlignment> aligned_;
  std::unique_ptr<CheckedModule> module_;
  // Guards module_. Taken without the GIL: its holder may run for long, and an engine may need the GIL.
  std::mutex mutex_;
  std::map<std::string, MethodInfo> infos_;                               // guarded by the GIL
  std::vector<Selection> last_selections_;                                // guarded by the GIL
  std::map<std::string, std::vector<std::optional<int>>> input_devices_;  // by method; guarded by the GIL
};

// Attributes as Python shows them.
template <typename... Names>
nb::str shown(const char* format, nb::handle self, Names... names) {
  return nb::str(nb::object(nb::str(format).attr("format")(self.attr(names)...)));
}

}  // namespace

void bind_module(nb::module_& m) {
  nb::exception<ExecuTorchFailure>(m, "ExecuTorchError", PyExc_RuntimeError);
  nb::class_<TensorMeta>(m, "TensorMeta")
      .def_prop_ro("dtype", [](const TensorMeta& t) { return std::string(to_string(t.dtype)); })
      .def_ro("sizes", &TensorMeta::sizes)
      .def("__repr__",
           [](nb::handle self) { return shown("TensorMeta(dtype={!r}, sizes={!r})", self, "dtype", "sizes"); });
  nb::class_<ValueMeta>(m, "ValueMeta")
      .def_prop_ro("kind", [](const ValueMeta& v) { return std::string(executorch::runtime::tag_to_string(v.tag)); })
      .def_ro("tensor", &ValueMeta::tensor)
      .def("__repr__",
           [](nb::handle self) { return shown("ValueMeta(kind={!r}, tensor={!r})", self, "kind", "tensor"); });
  nb::class_<MethodInfo>(m, "MethodMeta")
      .def_ro("name", &MethodInfo::name)
      .def_ro("inputs", &MethodInfo::inputs)
      .def_ro("outputs", &MethodInfo::outputs)
      .def_ro("backends", &MethodInfo::backends)
      .def("__repr__", [](nb::handle self) {
        return shown("MethodMeta(name={!r}, inputs={!r}, outputs={!r}, backends={!r})", self, "name", "inputs",
                     "outputs", "backends");
      });
  nb::class_<Selection>(m, "Selection", "The optimization profile that one delegate used in one call.")
      .def_ro("engine_id", &Selection::engine_id)
      .def_ro("profile", &Selection::profile)
      .def("__repr__", [](const Selection& s) {
        return "Selection(engine_id='" + s.engine_id + "', profile=" + std::to_string(s.profile) + ")";
      });
  nb::class_<PyModule>(m, "Module")
      .def(
          nb::init<const std::string&, const std::string&, bool, nb::dict>(),
          nb::sig("def __init__(self, path: str, load_mode: str, etdump: bool, options: dict[str, int | str]) -> None"),
          "path"_a, "load_mode"_a, "etdump"_a, "options"_a)
      .def(nb::init<nb::bytes, bool, nb::dict>(),
           nb::sig("def __init__(self, program: bytes, etdump: bool, options: dict[str, int | str]) -> None"),
           "program"_a, "etdump"_a, "options"_a)
      .def_prop_ro("method_names", &PyModule::method_names)
      .def("method_meta", &PyModule::method_info, "name"_a, nb::rv_policy::copy)
      .def("is_method_loaded", &PyModule::is_method_loaded, "name"_a)
      .def("load_method", &PyModule::load_method,
           nb::sig("def load_method(self, name: str, options: dict[str, int | str]) -> None"), "name"_a, "options"_a)
      .def("share_state", &PyModule::share_state, "state"_a)
      .def("unload_method", &PyModule::unload_method, "name"_a)
      .def("execute", &PyModule::execute,
           nb::sig("def execute(self, name: str, inputs: collections.abc.Sequence[typing.Any], torch_outputs: bool) "
                   "-> list[typing.Any]"),
           "name"_a, "inputs"_a, "torch_outputs"_a)
      .def("take_etdump", &PyModule::take_etdump)
      .def_prop_ro("last_selections", &PyModule::last_selections, nb::rv_policy::copy)
      .def_prop_ro("events_dropped", &PyModule::events_dropped);
}

}  // namespace executorch_tensorrt
