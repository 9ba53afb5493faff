#include "runtime/log.h"

#include <executorch/runtime/platform/platform.h>

#include <cstddef>

namespace executorch_tensorrt {
namespace {

void drop_log_message(et_timestamp_t, et_pal_log_level_t, const char*, const char*, std::size_t, const char*,
                      std::size_t) {}

}  // namespace

void silence_log() {
  (void)executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(drop_log_message, "executorch_tensorrt"));
}

}  // namespace executorch_tensorrt
