// EngineCalls: what is known of a call's time on the device, and of its layers.
#include <utility>

#include "delegate/engine_calls.h"
#include "delegate/layer_events.h"

namespace executorch_tensorrt {

bool EngineCalls::is_timed(const EngineCall& call) const {
  return clock_ != nullptr && !call.captured && call.at(ProfileLevel::kPhases).active();
}

Status EngineCalls::take_layers(EngineCall& call) {
  LayerRecords layers;
  if (Status status = call.context->take_layers(layers); !status.ok()) {
    return status;
  }
  arrange_layers(layers, call.enqueue_start);
  if (call.trace.tracer != nullptr) {
    call.layers_dropped = log_layers(*call.trace.tracer, layers);
  }
  if (call.trace.record != nullptr) {
    call.trace.record->layers = std::move(layers);
  }
  return {};
}

// TensorRT reports layers with the help of the stream that they ran on, so they are lost unless this thread's calls
// still go there.
EngineCalls::EarlyTimes EngineCalls::take_early_times(const CallRecord& record, bool has_layers) {
  EarlyTimes times;
  if (!io_.device->is_done()) {
    return times;
  }
  times.device_ns = clock_->take_ns(io_.device->end_event());
  const std::unique_ptr<BoundContext>& context = contexts_[record.profile];
  if (has_layers && context && io_.device->is_on_last_stream() && context->take_layers(times.layers).ok()) {
    arrange_layers(times.layers, record.enqueue_start);
  }
  return times;
}

}  // namespace executorch_tensorrt
