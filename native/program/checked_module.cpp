#include "program/checked_module.h"

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/text.h"
#include "delegate/backend.h"
#include "executorch_tensorrt/backend.h"
#include "executorch_tensorrt/last_error.h"
#include "process/failure.h"
#include "verify/program.h"

namespace executorch_tensorrt {
namespace {

using executorch::extension::BufferDataLoader;
using executorch::extension::MmapDataLoader;
using executorch::runtime::BackendOption;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::LoadBackendOptionsMap;

constexpr char kDamaged[] = " is no ExecuTorch program, or is damaged";

std::unique_ptr<BoundedETDump> make_tracer(bool etdump) { return etdump ? std::make_unique<BoundedETDump>() : nullptr; }

}  // namespace

Result<BackendOption> backend_option(std::string_view key, const std::variant<bool, int, std::string>& value) {
  const std::string label = "load option " + quoted(key);
  BackendOption option;
  if (key.size() >= sizeof(option.key)) {
    return invalid_argument(label + ": its name is too long");
  }
  std::memcpy(option.key, key.data(), key.size());
  option.key[key.size()] = '\0';
  if (const auto* flag = std::get_if<bool>(&value)) {
    option.value = *flag;
  } else if (const auto* number = std::get_if<int>(&value)) {
    option.value = *number;
  } else {
    const auto& string = std::get<std::string>(value);
    std::array<char, executorch::runtime::kMaxOptionValueLength> text{};
    if (string.size() >= text.size()) {
      return invalid_argument(label + ": got " + std::to_string(string.size()) + " bytes, allowed " +
                              std::to_string(text.size() - 1));
    }
    std::memcpy(text.data(), string.data(), string.size());
    option.value = text;
  }
  return option;
}

Result<std::unique_ptr<CheckedModule>> CheckedModule::open(const std::string& path, LoadMode mode, bool etdump) {
  (void)take_last_error();
  auto tracer = make_tracer(etdump);
  auto memory = std::make_unique<MethodMemory>();
  std::unique_ptr<CheckedModule> made(new CheckedModule(tracer.get(), memory.get()));
  made->module_ = std::make_unique<OpenModule>(path, mode, std::move(tracer), std::move(memory));
  const auto file = MmapDataLoader::from(path.c_str(), MmapDataLoader::MlockConfig::NoMlock);
  const auto size = file.ok() ? file->size() : file.error();
  const auto bytes = size.ok() ? file->load(0, *size, {}) : size.error();
  const std::string what = "'" + path + "'";
  if (!bytes.ok()) {
    return status_of(what + kDamaged, bytes.error());
  }
  if (bytes->size() == 0) {  // also a pipe, which would be waited for again
    return status_of(what + kDamaged, Error::InvalidProgram);
  }
  if (Status status = made->load_program(what, bytes->data(), bytes->size()); !status.ok()) {
    return status;
  }
  return made;
}

Result<std::unique_ptr<CheckedModule>> CheckedModule::open(const void* data, std::size_t size, bool etdump) {
  (void)take_last_error();
  auto tracer = make_tracer(etdump);
  auto memory = std::make_unique<MethodMemory>();
  std::unique_ptr<CheckedModule> made(new CheckedModule(tracer.get(), memory.get()));
  made->module_ = std::make_unique<OpenModule>(std::make_unique<BufferDataLoader>(data, size), std::move(memory),
                                               nullptr, std::move(tracer));
  if (Status status = made->load_program("the program", data, size); !status.ok()) {
    return status;
  }
  return made;
}

// ExecuTorch verifies the structure, this library what it says.
Status CheckedModule::load_program(const std::string& what, const void* data, std::size_t size) {
  const auto error = module_->load(executorch::runtime::Program::Verification::InternalConsistency);
  if (error != Error::Ok) {
    return status_of(what + kDamaged, error);
  }
  const Status status = verify_program(data, size);
  return status.ok() ? status : Status(status.code(), what + kDamaged + ": " + status.message());
}

Result<std::vector<std::string>> CheckedModule::method_names() {
  const auto names = module_->method_names();
  if (!names.ok()) {
    return status_of("method names", names.error());
  }
  std::vector<std::string> sorted(names->begin(), names->end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Result<MethodInfo> CheckedModule::describe(const std::string& name) {
  const auto names = method_names();
  if (!names.ok()) {
    return names.status();
  }
  if (std::find(names->begin(), names->end(), name) == names->end()) {
    std::string have;
    for (const std::string& known : *names) {
      have += (have.empty() ? "" : ", ") + quoted(known);
    }
    return invalid_argument("unknown method: got " + quoted(name) + ", allowed " + have);
  }
  const auto meta = module_->method_meta(name);
  if (!meta.ok()) {
    return status_of("method '" + name + "'", meta.error());
  }
  return describe_method(*meta);
}

Status CheckedModule::load_method(const MethodInfo& info, std::vector<BackendOption> options) {
  if (Status status = check_device(info); !status.ok()) {
    return status;
  }
  if (is_method_loaded(info.name)) {
    return invalid_argument("method '" + info.name +
                            "' is already loaded: its options are fixed; load it before its first call, or make "
                            "another Module");
  }
  if (const auto meta = module_->method_meta(info.name); meta.ok() && meta->uses_backend(kBackendId)) {
    if (const std::string problem = backend_problem(); !problem.empty()) {
      return {StatusCode::kNotSupported, "method " + quoted(info.name) + " does not load: " + problem};
    }
  }
  LoadBackendOptionsMap map;
  Error error = options.empty() ? Error::Ok : map.set_options(kBackendId, {options.data(), options.size()});
  (void)take_last_error();
  if (error == Error::Ok) {
    const EngineStateGuard guard(state_);
    memory_->begin(info.name);
    auto& arenas = arenas_[info.name];
    const auto meta = module_->method_meta(info.name);
    arenas = meta.ok() ? MethodArenas::create(*meta, info) : nullptr;
    error = module_->load_method(info.name, arenas ? arenas->allocator() : nullptr, nullptr, &map);
  }
  if (error != Error::Ok) {
    memory_->free(info.name);
    arenas_.erase(info.name);
    const std::string why = error == Error::OperatorMissing
                                ? ": an operator has no kernel in this process, which ExecuTorch's log names; load a "
                                  "library that has one, or export the model without it"
                                : "";
    return status_of("method '" + info.name + "' does not load" + why, error);
  }
  auto values = MethodValues::create(module_->method(info.name), info);
  if (!values.ok()) {
    unload_method(info.name);
    return values.status();
  }
  values_[info.name] = std::move(*values);
  return {};
}

bool CheckedModule::unload_method(const std::string& name) {
  const bool unloaded = module_->unload_method(name);
  if (unloaded) {
    values_.erase(name);
    memory_->free(name);
    arenas_.erase(name);
  }
  return unloaded;
}

Result<std::vector<EValue>> CheckedModule::execute(const MethodInfo& info, std::vector<EValue> inputs,
                                                   const std::vector<DeviceOutput>& from) {
  (void)take_last_error();
  MethodValues& values = *values_.at(info.name);
  if (Status status = values.begin(inputs, from); !status.ok()) {
    (void)values.end(false);
    return status;
  }
  const auto failed = [&](Error error) { return status_of("method '" + info.name + "' failed", error); };
  auto result = module_->execute(info.name, inputs);
  const Status ended = values.end(result.ok());
  if (result.error() == Error::InvalidArgument) {
    if (Status status = values.check_constants("method '" + info.name + "'", inputs); !status.ok()) {
      return status;
    }
  }
  if (!result.ok()) {
    return failed(result.error());
  }
  if (!ended.ok()) {
    return ended;
  }
  for (const EValue& value : *result) {
    if (value.isTensor() && value.toTensor().nbytes() > 0 && value.toTensor().const_data_ptr() == nullptr) {
      return failed(Error::InvalidState);
    }
  }
  return std::move(*result);
}

}  // namespace executorch_tensorrt
