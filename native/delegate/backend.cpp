#include "delegate/backend.h"

#include <executorch/runtime/backend/interface.h>

#include <exception>
#include <memory>
#include <new>
#include <string>

#include "delegate/engine_handle.h"
#include "delegate/options.h"
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
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Span;

// Without words where there is no memory for them.
Status failure(StatusCode code, const char* text) noexcept {
  try {
    return {code, text};
  } catch (...) {
    return {StatusCode::kOutOfMemory, std::string()};
  }
}

// No exception crosses the delegate boundary: ExecuTorch would leave the method stuck in mid execution.
template <typename Function>
Status without_exceptions(Function&& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return failure(StatusCode::kOutOfMemory, "out of host memory");
  } catch (const std::exception& error) {
    return failure(StatusCode::kInternal, error.what());
  } catch (...) {
    return failure(StatusCode::kInternal, "unknown exception");
  }
}

class TensorRTBackend final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  // `processed` is kept: engines read their weights from it, and ExecuTorch frees it after destroy().
  executorch::runtime::Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                                                    ArrayRef<CompileSpec> compile_specs) const override {
    const char* method = context.get_method_name() != nullptr ? context.get_method_name() : "";
    std::unique_ptr<EngineHandle> handle;
    std::string label;
    const Status status = without_exceptions([&]() -> Status {
      label = std::string("method '") + method + "'";
      const Result<DelegateOptions> options = resolve_options(context.runtime_specs(), compile_specs);
      if (!options.ok()) {
        return options.status();
      }
      auto created = EngineHandle::create(method, processed->data(), processed->size(), *options);
      if (!created.ok()) {
        return created.status();
      }
      handle = std::move(*created);
      return {};
    });
    if (!status.ok()) {
      return report_failure(label, status);
    }
    return static_cast<DelegateHandle*>(handle.release());
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* delegate, Span<EValue*> args) const override {
    auto* handle = static_cast<EngineHandle*>(delegate);
    const Status status = without_exceptions([&] { return handle->execute(args, context.event_tracer()); });
    return status.ok() ? Error::Ok : handle->failures().report(status);
  }

  void destroy(DelegateHandle* delegate) const override { delete static_cast<EngineHandle*>(delegate); }
};

TensorRTBackend backend;
const Error registration = executorch::runtime::register_backend({kBackendId, &backend});

}  // namespace

bool tracing_compiled_in() {
#ifdef ET_EVENT_TRACER_ENABLED
  return true;
#else
  return false;
#endif
}

bool backend_is_registered() { return registration == Error::Ok; }

}  // namespace executorch_tensorrt
