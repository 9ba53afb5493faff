// Registers "TensorRTBackend" before ours is loaded, as another library's runtime would. It takes no engines.
#include <executorch/runtime/backend/interface.h>

namespace {

using namespace executorch::runtime;

class TheirBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }
  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer*, ArrayRef<CompileSpec>) const override {
    return Error::InvalidProgram;
  }
  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*>) const override {
    return Error::NotImplemented;
  }
};

TheirBackend backend;
[[maybe_unused]] const Error registered = register_backend({"TensorRTBackend", &backend});

}  // namespace
