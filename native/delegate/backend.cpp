#include "delegate/backend.h"

#include <dlfcn.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "core/exceptions.h"
#include "core/text.h"
#include "delegate/bounded_tracer.h"
#include "delegate/engine_handle.h"
#include "delegate/options.h"
#include "executorch_tensorrt/backend.h"
#include "process/failure.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::EventTracer;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Span;

// What a delegate handle points to.
class Delegate {
 public:
  Delegate() = default;
  ~Delegate() {
    if (left_out_ > 0) {
      (void)without_exceptions([this]() -> Status {
        failures().info(std::to_string(left_out_) + " events were left out of an ETDump that was full");
        return {};
      });
    }
  }
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  // Before all else. Once there is an engine, nothing fails: its buffers are in a state.
  void take(std::unique_ptr<EngineHandle> engine) noexcept { engine_ = std::move(engine); }

  FailureLog& failures() { return engine_->failures(); }

  Status execute(Span<EValue*> args, EventTracer* tracer) {
    return tracer == nullptr ? engine_->execute(args, nullptr) : execute_traced(args, *tracer);
  }

 private:
  // Apart, so that a call without a tracer takes nothing from it.
  [[gnu::noinline]] Status execute_traced(Span<EValue*> args, EventTracer& tracer) {
    if (!is_limited(tracer)) {
      return engine_->execute(args, &tracer);
    }
    BoundedTracer bounded(tracer);
    Status status = engine_->execute(args, &bounded);
    if (bounded.left_out() > 0) {
      count_left_out(bounded);
    }
    return status;
  }

  void count_left_out(const BoundedTracer& tracer) {
    left_out_ += tracer.left_out();
    if (tracer.is_first_to_leave_out()) {
      failures().warn(
          "the caller's ETDump gets full, so events of TensorRT delegates are left out of it from now on: " +
          std::to_string(tracer.bytes_free()) + " of " + std::to_string(tracer.bytes()) +
          " bytes are free, and stay for ExecuTorch's own events; give ETDumpGen a larger buffer, or none");
    }
  }

  std::unique_ptr<EngineHandle> engine_;
  std::atomic<std::size_t> left_out_{0};
};

// What programs say: once a process, however many engines they have.
FailureLog& programs() {
  static FailureLog& log = *new FailureLog(kBackendId);
  return log;
}

class TensorRTBackend final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  // `processed` is kept: engines read their weights from it, and ExecuTorch frees it after destroy().
  executorch::runtime::Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                                                    ArrayRef<CompileSpec> compile_specs) const override {
    const char* method = context.get_method_name() != nullptr ? context.get_method_name() : "";
    std::unique_ptr<Delegate> delegate;
    std::string label;
    const Status status = without_exceptions([&]() -> Status {
      label = "method " + quoted(method);
      delegate = std::make_unique<Delegate>();
      const Result<DelegateOptions> options = resolve_options(context.runtime_specs(), compile_specs);
      if (!options.ok()) {
        return options.status();
      }
      if (!options->ignored.empty()) {
        programs().warn(options->ignored);
      }
      auto created = EngineHandle::create(method, processed->data(), processed->size(), *options);
      if (!created.ok()) {
        return created.status();
      }
      delegate->take(std::move(*created));
      return {};
    });
    if (!status.ok()) {
      return report_failure(label, status);
    }
    return static_cast<DelegateHandle*>(delegate.release());
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle, Span<EValue*> args) const override {
    auto* delegate = static_cast<Delegate*>(handle);
    const Status status = without_exceptions([&] { return delegate->execute(args, context.event_tracer()); });
    return status.ok() ? Error::Ok : delegate->failures().report(status);
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Delegate*>(handle); }
};

TensorRTBackend backend;

// The file that the code of another library's delegate comes from; empty when nobody knows.
std::string library_of(const executorch::runtime::BackendInterface& other) {
  const void* functions = nullptr;
  std::memcpy(&functions, static_cast<const void*>(&other), sizeof(functions));
  Dl_info info{};
  return dladdr(functions, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Empty when programs with TensorRT delegates come here.
std::string register_this() {
  executorch::runtime::runtime_init();  // for its log
  if (executorch::runtime::register_backend({kBackendId, &backend}) == Error::Ok) {
    return {};
  }
  const auto* const other = executorch::runtime::get_backend_class(kBackendId);
  std::string problem = other == nullptr ? "ExecuTorch takes no more backends" : "another library";
  if (other != nullptr) {
    const std::string library = library_of(*other);
    problem += (library.empty() ? "" : " (" + library + ")") + " has registered it before";
  }
  problem = "backend " + quoted(kBackendId) + " of executorch_tensorrt is not in use: " + problem +
            ", so programs with TensorRT engines can't run here; load libexecutorch_tensorrt.so (in Python, import "
            "executorch_tensorrt) first, or in a process of its own";
  set_standing_error(problem);
  log_message(LogLevel::kError, problem);
  return problem;
}

const std::string& problem() {
  static const std::string& text = *new std::string(register_this());  // outlives what asks at exit
  return text;
}

// When the library is loaded.
const bool registered = problem().empty();

}  // namespace

bool tracing_compiled_in() {
#ifdef ET_EVENT_TRACER_ENABLED
  return true;
#else
  return false;
#endif
}

bool backend_is_registered() { return registered; }

std::string backend_problem() { return problem(); }

}  // namespace executorch_tensorrt
