#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/failure.h"
#include "bindings/method_info.h"
#include "executorch_tensorrt/last_error.h"
#include "runtime/backend.h"
#include "runtime/bounded_etdump.h"
#include "runtime/selection_collector.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

using executorch::extension::BufferDataLoader;
using executorch::runtime::BackendOption;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::LoadBackendOptionsMap;
using executorch::runtime::Program;
using executorch::runtime::Tag;
using EtModule = executorch::extension::Module;

// Python's options, as ExecuTorch takes them; it would cut what is too long.
std::vector<BackendOption> backend_options(const nb::dict& options) {
  std::vector<BackendOption> out;
  for (const auto& [key, value] : options) {
    BackendOption option;
    const auto name = nb::cast<std::string>(key);
    if (name.size() >= sizeof(option.key)) {
      throw nb::value_error(("load option '" + name + "': its name is too long").c_str());
    }
    std::memcpy(option.key, name.c_str(), name.size() + 1);
    if (nb::isinstance<nb::bool_>(value)) {
      option.value = nb::cast<bool>(value);
    } else if (nb::isinstance<nb::int_>(value)) {
      option.value = nb::cast<int>(value);
    } else {
      std::array<char, executorch::runtime::kMaxOptionValueLength> text{};
      const auto string = nb::cast<std::string>(value);
      if (string.size() >= text.size()) {
        throw nb::value_error(("load option '" + name + "': got " + std::to_string(string.size()) + " bytes, allowed " +
                               std::to_string(text.size() - 1))
                                  .c_str());
      }
      std::memcpy(text.data(), string.data(), string.size());
      option.value = text;
    }
    out.push_back(option);
  }
  return out;
}

class PyModule {
 public:
  PyModule(const std::string& path, const std::string& mode, bool etdump, nb::dict options)
      : options_(backend_options(options)) {
    auto tracer = make_tracer(etdump);
    module_.emplace(path, load_mode(mode), std::move(tracer));
    load("'" + path + "'");
  }

  PyModule(nb::bytes program, bool etdump, nb::dict options) : options_(backend_options(options)) {
    const void* data = program.data();
    if (reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0) {
      bytes_ = program;
    } else {
      aligned_.reset(static_cast<std::uint8_t*>(::operator new[](program.size(), std::align_val_t{kAlignment})));
      std::memcpy(aligned_.get(), data, program.size());
      data = aligned_.get();
    }
    module_.emplace(std::make_unique<BufferDataLoader>(data, program.size()), nullptr, nullptr, make_tracer(etdump));
    load("the program");
  }

  std::vector<std::string> method_names() {
    auto names = module_->method_names();
    check("method names", names.error());
    std::vector<std::string> sorted(names->begin(), names->end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  const MethodInfo& method_info(const std::string& name) {
    if (const auto found = infos_.find(name); found != infos_.end()) {
      return found->second;
    }
    const std::vector<std::string> names = method_names();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string have;
      for (const std::string& known : names) {
        have += (have.empty() ? "'" : ", '") + known + "'";
      }
      throw nb::value_error(("unknown method: got '" + name + "', allowed " + have).c_str());
    }
    const auto meta = module_->method_meta(name);
    check("method '" + name + "'", meta.error());
    return infos_.emplace(name, describe_method(*meta)).first->second;
  }

  bool is_method_loaded(const std::string& name) {
    const nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    return module_->is_method_loaded(name);
  }

  // Options of this method on top of the module's.
  void load_method(const std::string& name, const nb::dict& options) {
    check_device(method_info(name));
    std::vector<BackendOption> all = options_;
    for (const BackendOption& option : backend_options(options)) {
      const auto same = [&](const BackendOption& other) { return std::strcmp(other.key, option.key) == 0; };
      if (const auto found = std::find_if(all.begin(), all.end(), same); found != all.end()) {
        *found = option;
      } else {
        all.push_back(option);
      }
    }
    Error error = Error::Ok;
    {
      const nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (module_->is_method_loaded(name)) {
        error = Error::AlreadyLoaded;
      } else {
        error = load_locked(name, all);
      }
    }
    if (error == Error::AlreadyLoaded) {
      throw nb::value_error(("method '" + name +
                             "' is already loaded: its options are fixed; load it before its "
                             "first call, or make another Module")
                                .c_str());
    }
    check("method '" + name + "' does not load", error);
  }

  // False when it was not loaded.
  bool unload_method(const std::string& name) {
    method_info(name);
    const nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    return module_->unload_method(name);
  }

  nb::list execute(const std::string& name, const nb::sequence& args, bool torch_outputs) {
    const MethodInfo& info = method_info(name);
    check_device(info);
    std::vector<InputArray> arrays;  // keeps the callers' arrays alive
    std::vector<EValue> inputs = convert_inputs(info, args, arrays);
    std::vector<OutputValue> outputs;
    Error error = Error::Ok;
    SelectionCollector collector;
    {
      const nb::gil_scoped_release release;
      // ExecuTorch's Module is not thread-safe; outputs lie in its arena, so they are copied under the lock as well.
      const std::lock_guard<std::mutex> lock(mutex_);
      error = execute_locked(name, inputs, outputs);
    }
    check("method '" + name + "' failed", error);
    last_selections_ = collector.take();
    nb::list out;
    for (OutputValue& output : outputs) {
      out.append(to_python(std::move(output), torch_outputs));
    }
    return out;
  }

  std::optional<nb::bytes> take_etdump() {
    if (etdump_ == nullptr) {
      throw nb::value_error("this Module records no events: make it with profile_level='phases' or etdump=True");
    }
    std::optional<std::string> dump;
    {
      const nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> lock(mutex_);
      dump = etdump_->take();
    }
    return dump ? std::optional(nb::bytes(dump->data(), dump->size())) : std::nullopt;
  }

  const std::vector<Selection>& last_selections() const { return last_selections_; }

  std::size_t events_dropped() {
    const nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    return etdump_ != nullptr ? etdump_->events_dropped() : 0;
  }

 private:
  static constexpr std::size_t kAlignment = 16;  // of BufferDataLoader
  struct AlignedDelete {
    void operator()(std::uint8_t* bytes) const { ::operator delete[](bytes, std::align_val_t{kAlignment}); }
  };

  static EtModule::LoadMode load_mode(const std::string& name) {
    if (name == "mmap") return EtModule::LoadMode::Mmap;
    if (name == "file") return EtModule::LoadMode::File;
    if (name == "mlock") return EtModule::LoadMode::MmapUseMlockIgnoreErrors;
    throw nb::value_error(("load_mode: got '" + name + "', allowed 'mmap', 'file', 'mlock'").c_str());
  }

  std::unique_ptr<BoundedETDump> make_tracer(bool etdump) {
    auto tracer = etdump ? std::make_unique<BoundedETDump>() : nullptr;
    etdump_ = tracer.get();
    return tracer;
  }

  void load(const std::string& what) {
    check(what + " is no ExecuTorch program, or is damaged", module_->load(Program::Verification::InternalConsistency));
  }

  Error load_locked(const std::string& name, std::vector<BackendOption>& options) {
    LoadBackendOptionsMap map;
    if (!options.empty()) {
      const Error error = map.set_options(kBackendId, {options.data(), options.size()});
      if (error != Error::Ok) {
        return error;
      }
    }
    (void)take_last_error();
    const Error error = module_->load_method(name, nullptr, nullptr, &map);
    return error == Error::Ok ? provide_unplanned_outputs(name) : error;
  }

  // Outputs that the program planned no memory for are the caller's to provide; nobody else does that here.
  Error provide_unplanned_outputs(const std::string& name) {
    const std::vector<ValueMeta>& outputs = infos_.at(name).outputs;
    std::vector<std::vector<std::uint8_t>>& buffers = output_buffers_[name];
    buffers.clear();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].tensor || outputs[o].tensor->is_memory_planned) {
        continue;
      }
      const TensorMeta& meta = *outputs[o].tensor;
      buffers.emplace_back(std::max<std::size_t>(meta.nbytes, 1));
      const std::vector<executorch::aten::SizesType> sizes(meta.sizes.begin(), meta.sizes.end());
      const auto tensor = executorch::extension::make_tensor_ptr(sizes, buffers.back().data(), meta.dim_order, {},
                                                                 static_cast<executorch::aten::ScalarType>(meta.dtype));
      // Refused for a constant or an input that the method returns: those have memory.
      (void)module_->set_output(name, EValue(*tensor), o);
    }
    return Error::Ok;
  }

  Error execute_locked(const std::string& name, const std::vector<EValue>& inputs, std::vector<OutputValue>& outputs) {
    if (!module_->is_method_loaded(name)) {
      const Error error = load_locked(name, options_);
      if (error != Error::Ok) {
        return error;
      }
    }
    (void)take_last_error();
    const auto result = module_->execute(name, inputs);
    if (!result.ok()) {
      return result.error();
    }
    for (const EValue& value : *result) {
      if (value.isTensor() && value.toTensor().nbytes() > 0 && value.toTensor().const_data_ptr() == nullptr) {
        return Error::InvalidState;
      }
      outputs.push_back(copy_output(value));
    }
    return Error::Ok;
  }

  std::vector<EValue> convert_inputs(const MethodInfo& info, const nb::sequence& args,
                                     std::vector<InputArray>& arrays) {
    const std::size_t count = nb::len(args);
    if (count != info.inputs.size()) {
      throw nb::value_error(("method '" + info.name + "': got " + std::to_string(count) + " inputs, allowed " +
                             std::to_string(info.inputs.size()))
                                .c_str());
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
        throw nb::value_error((label + " is damaged in the program").c_str());
      }
      arrays.push_back(InputArray::from(label, arg, *info.inputs[i].tensor));
      values.emplace_back(arrays.back().tensor());
    }
    return values;
  }

  std::vector<BackendOption> options_;
  nb::object bytes_;
  std::unique_ptr<std::uint8_t[], AlignedDelete> aligned_;
  BoundedETDump* etdump_ = nullptr;                                               // owned by module_
  std::map<std::string, std::vector<std::vector<std::uint8_t>>> output_buffers_;  // by method; outlive module_
  std::optional<EtModule> module_;
  // Guards module_ and etdump_. Taken without the GIL: its holder may run for long, and an engine may need the GIL.
  std::mutex mutex_;
  std::map<std::string, MethodInfo> infos_;  // guarded by the GIL
  std::vector<Selection> last_selections_;   // guarded by the GIL
};

}  // namespace

void bind_module(nb::module_& m) {
  nb::exception<ExecuTorchFailure>(m, "ExecuTorchError", PyExc_RuntimeError);
  nb::class_<TensorMeta>(m, "TensorMeta")
      .def_prop_ro("dtype", [](const TensorMeta& t) { return std::string(to_string(t.dtype)); })
      .def_ro("sizes", &TensorMeta::sizes);
  nb::class_<ValueMeta>(m, "ValueMeta")
      .def_prop_ro("kind", [](const ValueMeta& v) { return std::string(executorch::runtime::tag_to_string(v.tag)); })
      .def_ro("tensor", &ValueMeta::tensor);
  nb::class_<MethodInfo>(m, "MethodMeta")
      .def_ro("name", &MethodInfo::name)
      .def_ro("inputs", &MethodInfo::inputs)
      .def_ro("outputs", &MethodInfo::outputs)
      .def_ro("backends", &MethodInfo::backends);
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
