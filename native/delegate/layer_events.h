// The layers of one call, as events of ExecuTorch's tracer.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include "core/layer_record.h"

namespace executorch_tensorrt {

// Gives layers of one name names of their own, " #1" and so on, and ends them after they begin. Those of a device's
// clock begin at `start`, in ticks.
void arrange_layers(LayerRecords& layers, std::uint64_t start);

// How many were left out: ETDump stores every event with its name.
std::size_t log_layers(executorch::runtime::EventTracer& tracer, const LayerRecords& layers);

}  // namespace executorch_tensorrt
