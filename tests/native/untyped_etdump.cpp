#include "untyped_etdump.h"

namespace executorch_tensorrt::testing {
namespace {

class UntypedETDump final : public executorch::etdump::ETDumpGen {
 public:
  using ETDumpGen::ETDumpGen;
  void create_event_block(const char* name) override { ETDumpGen::create_event_block(name); }
};

}  // namespace

std::unique_ptr<executorch::etdump::ETDumpGen> untyped_etdump(executorch::runtime::Span<std::uint8_t> buffer) {
  return std::make_unique<UntypedETDump>(buffer);
}

}  // namespace executorch_tensorrt::testing
