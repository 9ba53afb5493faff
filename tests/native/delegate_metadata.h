// DelegateMetadata: an ETDump that shows what the last call's event of the whole delegate says.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstdlib>
#include <string>

namespace executorch_tensorrt::testing {

class DelegateMetadata final : public executorch::etdump::ETDumpGen {
 public:
  DelegateMetadata() { create_event_block("Execute"); }
  ~DelegateMetadata() override { std::free(get_etdump_data().buf); }
  void end_profiling_delegate(executorch::runtime::EventTracerEntry entry, const void* metadata,
                              std::size_t size) override {
    if (size > 0) {
      of_delegate.assign(static_cast<const char*>(metadata), size);
    }
    ETDumpGen::end_profiling_delegate(entry, metadata, size);
  }

  std::string of_delegate;
};

}  // namespace executorch_tensorrt::testing
