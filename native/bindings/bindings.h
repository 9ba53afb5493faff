// The parts of the extension module `executorch_tensorrt._native`, one per header that they mirror.
#pragma once

#include <nanobind/nanobind.h>

namespace executorch_tensorrt {

void bind_aoti(nanobind::module_& m);     // aoti/torch_operators.h, aoti/packaged_engine.h
void bind_core(nanobind::module_& m);     // core/blob.h, core/metadata.h, core/selection.h
void bind_device(nanobind::module_& m);   // bindings/device_array.h
void bind_guard(nanobind::module_& m);    // executorch_tensorrt/guard.h and the guards
void bind_log(nanobind::module_& m);      // process/log.h, executorch_tensorrt/last_error.h
void bind_runtime(nanobind::module_& m);  // delegate/backend.h, engines/registry.h
void bind_state(nanobind::module_& m);    // executorch_tensorrt/engine_state.h
void bind_module(nanobind::module_& m);   // program/checked_module.h

}  // namespace executorch_tensorrt
