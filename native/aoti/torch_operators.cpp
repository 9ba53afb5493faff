#include "aoti/torch_operators.h"

#include <mutex>
#include <stdexcept>

#include "aoti/execute_engine.h"
#include "aoti/torch_api.h"
#include "core/profiling_settings.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/profiling_control.h"
#include "executorch_tensorrt/torch_operators.h"
#include "process/failure.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;
using torch_api::check;
using torch_api::functions;
using torch_api::Value;

// What stable extensions of PyTorch 2.10 exchange with it.
constexpr std::uint64_t kInterfaceVersion = (std::uint64_t{2} << 56) | (std::uint64_t{10} << 48);

// What set_profile_execution() turns on. While it is on, the process-wide control has what is in force.
struct Wanted {
  std::mutex mutex;
  std::string format = "perfetto";
  std::string path_prefix;
};

Wanted& wanted() {
  static Wanted& instance = *new Wanted;
  return instance;
}

void set(const std::string& level, const std::string& format, const std::string& path_prefix) {
  if (set_profiling(level, format, path_prefix) != Error::Ok) {
    throw std::invalid_argument(take_last_error());
  }
}

bool is_on(const ProfilingState& state) { return state.is_set && state.level != "off"; }

void set_profile_execution(bool enabled) {
  Wanted& own = wanted();
  const std::lock_guard<std::mutex> lock(own.mutex);
  const ProfilingState now = profiling_state();
  if (enabled) {
    set(is_on(now) ? now.level : "layers", own.format, own.path_prefix);
  } else if (is_on(now)) {
    clear_profiling();
  }
}

void set_profile_format(const std::string& format) {
  if (format != "perfetto" && format != "trex") {
    throw std::invalid_argument("set_profile_format: got '" + format + "', allowed 'perfetto', 'trex'");
  }
  Wanted& own = wanted();
  const std::lock_guard<std::mutex> lock(own.mutex);
  if (const ProfilingState now = profiling_state(); is_on(now)) {
    set(now.level, format, now.path_prefix);
  }
  own.format = format;
}

void set_profile_path_prefix(const std::string& path_prefix) {
  Wanted& own = wanted();
  const std::lock_guard<std::mutex> lock(own.mutex);
  // Checked also while it is off, so that the call that is wrong fails.
  const ProfilingState now = profiling_state();
  if (is_on(now)) {
    set(now.level, now.format, path_prefix);
  } else if (Status status = check_settings({ProfileLevel::kLayers, ProfileFormat::kPerfetto, path_prefix});
             !status.ok()) {
    throw_status("set_profile_path_prefix", status);
  }
  own.path_prefix = path_prefix;
}

std::string get_profile_format() {
  Wanted& own = wanted();
  const std::lock_guard<std::mutex> lock(own.mutex);
  const ProfilingState now = profiling_state();
  return is_on(now) ? now.format : own.format;
}

std::string get_profile_path_prefix() {
  Wanted& own = wanted();
  const std::lock_guard<std::mutex> lock(own.mutex);
  const ProfilingState now = profiling_state();
  return is_on(now) ? now.path_prefix : own.path_prefix;
}

std::string take_string(Value value) {
  const torch_api::StringPtr text(torch_api::handle<torch_api::String>(value));
  const char* data = nullptr;
  std::size_t size = 0;
  check(functions().torch_string_length(text.get(), &size), "torch_string_length");
  check(functions().torch_string_c_str(text.get(), &data), "torch_string_c_str");
  return {data, size};
}

template <void (*set_text)(const std::string&)>
void text_setter(Value* stack, std::uint64_t, std::uint64_t) {
  set_text(take_string(stack[0]));
}

template <std::string (*get_text)()>
void text_getter(Value* stack, std::uint64_t, std::uint64_t) {
  const std::string text = get_text();
  torch_api::String* made = nullptr;
  check(functions().torch_new_string_handle(text.data(), text.size(), &made), "torch_new_string_handle");
  stack[0] = torch_api::value_of(made);
}

void execution_setter(Value* stack, std::uint64_t, std::uint64_t) { set_profile_execution((stack[0] & 0xff) != 0); }

void execution_getter(Value* stack, std::uint64_t, std::uint64_t) { stack[0] = is_on(profiling_state()) ? 1 : 0; }

struct Operator {
  const char* name;
  const char* schema;
  torch_api::Kernel kernel;
};

constexpr Operator kProfilingOperators[] = {
    {"set_profile_path_prefix", "set_profile_path_prefix(str path_prefix) -> ()",
     &text_setter<&set_profile_path_prefix>},
    {"get_profile_path_prefix", "get_profile_path_prefix() -> str", &text_getter<&get_profile_path_prefix>},
    {"set_profile_format", "set_profile_format(str format) -> ()", &text_setter<&set_profile_format>},
    {"get_profile_format", "get_profile_format() -> str", &text_getter<&get_profile_format>},
    {"set_profile_execution", "set_profile_execution(bool enabled) -> ()", &execution_setter},
    {"get_profile_execution", "get_profile_execution() -> bool", &execution_getter},
};

constexpr Operator kEngineOperators[] = {
    {"execute_engine", "execute_engine(Tensor[] inputs, Tensor engine, SymInt[] outputs) -> Tensor[]", &execute_engine},
    {"execute_engine.in_place",
     "execute_engine.in_place(Tensor(a!)[] buffers, Tensor[] inputs, Tensor engine, Tensor(b!)[] outputs) -> ()",
     &execute_engine_in_place},
};

// Libraries live as long as PyTorch's dispatcher.
template <std::size_t N>
void register_all(const char* name_space, const char* key, const Operator (&operators)[N], bool define = true) {
  torch_api::Library* schemas = nullptr;
  torch_api::Library* kernels = nullptr;
  if (define) {
    check(functions().aoti_torch_library_init_fragment(name_space, __FILE__, __LINE__, &schemas),
          "aoti_torch_library_init_fragment");
  }
  check(functions().aoti_torch_library_init_impl(name_space, key, __FILE__, __LINE__, &kernels),
        "aoti_torch_library_init_impl");
  for (const Operator& op : operators) {
    if (define) {
      check(functions().aoti_torch_library_def(schemas, op.schema), "aoti_torch_library_def");
    }
    check(functions().torch_library_impl(kernels, op.name, op.kernel, kInterfaceVersion), "torch_library_impl");
  }
}

// Registers once; PyTorch aborts or throws for what is there already.
template <typename Function>
Status attempt(Function&& function) {
  if (Status status = torch_api::load(); !status.ok()) {
    return status;
  }
  try {
    function();
  } catch (const std::exception& error) {
    return {StatusCode::kInternal, error.what()};
  }
  return {};
}

}  // namespace

Status register_all_operators() {
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (done) {
    return {};
  }
  Status status = attempt([] {
    register_all("executorch_tensorrt", "CPU", kEngineOperators);
    register_all("executorch_tensorrt", "CUDA", kEngineOperators, false);
    register_all("executorch_tensorrt", "CompositeExplicitAutograd", kProfilingOperators);
  });
  done = status.ok();
  return status;
}

Error register_torch_operators() {
  const Status status = register_all_operators();
  return status.ok() ? Error::Ok : report_failure("register_torch_operators", status);
}

Status register_profiling_operators(const std::string& name_space) {
  return attempt([&] { register_all(name_space.c_str(), "CompositeExplicitAutograd", kProfilingOperators); });
}

}  // namespace executorch_tensorrt
