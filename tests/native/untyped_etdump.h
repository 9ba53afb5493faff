// An ETDump of a class that is compiled with -fno-rtti, as embedded programs are.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstdint>
#include <memory>

namespace executorch_tensorrt::testing {

std::unique_ptr<executorch::etdump::ETDumpGen> untyped_etdump(executorch::runtime::Span<std::uint8_t> buffer);

}  // namespace executorch_tensorrt::testing
