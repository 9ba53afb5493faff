#include "bindings/bindings.h"

NB_MODULE(_native, m) {
  executorch_tensorrt::bind_aoti(m);
  executorch_tensorrt::bind_core(m);
  executorch_tensorrt::bind_device(m);
  executorch_tensorrt::bind_guard(m);
  executorch_tensorrt::bind_log(m);
  executorch_tensorrt::bind_runtime(m);
  executorch_tensorrt::bind_state(m);
  executorch_tensorrt::bind_module(m);
}
