// A delegate as ExecuTorch drives it, without a program around it: init, execute, destroy.
#pragma once

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/platform/runtime.h>

#include <string>
#include <utility>
#include <vector>

#include "delegate/backend.h"

namespace executorch_tensorrt::testing {

class Delegate {
 public:
  using Error = executorch::runtime::Error;
  using EValue = executorch::runtime::EValue;

  // Not yet loaded.
  explicit Delegate(std::string blob) : blob_(std::move(blob)), processed_(blob_.data(), blob_.size(), nullptr) {
    executorch::runtime::runtime_init();
  }
  ~Delegate() { destroy(); }
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  Error init(executorch::runtime::Span<const executorch::runtime::BackendOption> options = {}) {
    executorch::runtime::BackendInitContext context(nullptr, nullptr, "forward", nullptr, options);
    auto handle = backend().init(context, &processed_, {});
    handle_ = handle.ok() ? *handle : nullptr;
    return handle.error();
  }

  // Inputs, then outputs.
  Error execute(std::vector<EValue*>& args, executorch::runtime::EventTracer* tracer = nullptr) {
    executorch::runtime::BackendExecutionContext context(tracer, nullptr, "forward");
    return backend().execute(context, handle_, {args.data(), args.size()});
  }

  void destroy() {
    if (handle_ != nullptr) {
      backend().destroy(std::exchange(handle_, nullptr));
    }
  }

 private:
  static executorch::runtime::BackendInterface& backend() {
    return *executorch::runtime::get_backend_class(kBackendId);
  }

  std::string blob_;
  executorch::runtime::FreeableBuffer processed_;
  executorch::runtime::DelegateHandle* handle_ = nullptr;
};

}  // namespace executorch_tensorrt::testing
