// CheckedModule: ExecuTorch's Module as the Python binding and the runner use it. It verifies programs, provides memory
// for outputs that have none, records events without a way to abort, and says in words what failed.
#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/runtime/backend/options.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/internal.h"
#include "core/status.h"
#include "executorch_tensorrt/engine_state.h"
#include "program/bounded_etdump.h"
#include "program/method_arenas.h"
#include "program/method_info.h"
#include "program/method_memory.h"
#include "program/method_values.h"

namespace executorch_tensorrt {

// kInvalidArgument for a key or text that ExecuTorch would cut.
ETRT_INTERNAL Result<executorch::runtime::BackendOption> backend_option(
    std::string_view key, const std::variant<bool, int, std::string>& value);

// As thread-safe as ExecuTorch's: method_names() and describe() beside anything, the rest one call at a time.
class CheckedModule {
 public:
  using LoadMode = executorch::extension::Module::LoadMode;
  static constexpr std::size_t kAlignment = 16;  // of a program in memory

  // kInvalidProgram, or what reading says, unless it is a program that ExecuTorch takes.
  ETRT_INTERNAL static Result<std::unique_ptr<CheckedModule>> open(const std::string& path, LoadMode mode, bool etdump);

  // `data` is aligned and outlives the module.
  ETRT_INTERNAL static Result<std::unique_ptr<CheckedModule>> open(const void* data, std::size_t size, bool etdump);

  // Sorted.
  ETRT_INTERNAL Result<std::vector<std::string>> method_names();

  // kInvalidArgument, with the methods that there are, for another name.
  ETRT_INTERNAL Result<MethodInfo> describe(const std::string& name);

  bool is_method_loaded(const std::string& name) const { return module_->is_method_loaded(name); }

  // kInvalidArgument when the method is loaded: ExecuTorch would ignore the options. kNotSupported when its engines
  // would be another library's.
  ETRT_INTERNAL Status load_method(const MethodInfo& info, std::vector<executorch::runtime::BackendOption> options);

  // For methods that are loaded later. Each module begins with a state of its own.
  void share_state(const EngineState& state) { state_ = state; }

  // False when it was not loaded.
  ETRT_INTERNAL bool unload_method(const std::string& name);

  // Of a loaded method. Outputs stay valid until the next call. `from`: device outputs of other calls among the inputs.
  ETRT_INTERNAL Result<std::vector<executorch::runtime::EValue>> execute(
      const MethodInfo& info, std::vector<executorch::runtime::EValue> inputs,
      const std::vector<DeviceOutput>& from = {});

  // Of a loaded method.
  const MethodValues& values(const std::string& name) const { return *values_.at(name); }

  // Null unless events are recorded.
  BoundedETDump* etdump() const { return etdump_; }

 private:
  CheckedModule(BoundedETDump* etdump, MethodMemory* memory) : etdump_(etdump), memory_(memory) {}
  // `what` names it in messages.
  Status load_program(const std::string& what, const void* data, std::size_t size);

  // With its methods.
  struct OpenModule : executorch::extension::Module {
    using Module::Module;
    executorch::runtime::Method& method(const std::string& name) { return *methods_.at(name).method; }
  };

  EngineState state_;
  BoundedETDump* etdump_;                                        // owned by module_
  MethodMemory* memory_;                                         // owned by module_
  std::map<std::string, std::unique_ptr<MethodArenas>> arenas_;  // of loaded methods, if any; outlive module_
  std::map<std::string, std::unique_ptr<MethodValues>> values_;  // of loaded methods; outlive module_
  std::unique_ptr<OpenModule> module_;
};

}  // namespace executorch_tensorrt
