#include "delegate/layer_events.h"

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "delegate/bounded_tracer.h"

namespace executorch_tensorrt {
namespace {

// A call of more layers reports how many it left out. Sidecars get them all.
constexpr std::size_t kMaxLayersPerCall = 4096;

}  // namespace

void arrange_layers(LayerRecords& layers, std::uint64_t start) {
  // The Inspector keeps one event of a name per call.
  std::unordered_set<std::string> seen;
  std::unordered_map<std::string, std::size_t> repeats;
  for (LayerRecord& layer : layers) {
    if (layer.clock == Clock::kDevice) {
      layer.start += start;
      layer.end += start;
    }
    layer.end = std::max(layer.start, layer.end);  // the Inspector cannot read an event that ends before it begins
    std::string name = layer.name;
    while (!seen.insert(name).second) {
      name = layer.name + " #" + std::to_string(++repeats[layer.name]);
    }
    layer.name = std::move(name);
  }
}

std::size_t log_layers(executorch::runtime::EventTracer& tracer, const LayerRecords& layers) {
  const auto* const bounded = dynamic_cast<const BoundedTracer*>(&tracer);
  const std::size_t left_out_before = bounded != nullptr ? bounded->left_out() : 0;
  const std::size_t kept = std::min(layers.size(), kMaxLayersPerCall);
  for (std::size_t k = 0; k < kept; ++k) {
    const LayerRecord& layer = layers[k];
    const std::string metadata = "{\"clock\":\"" + std::string(layer.clock == Clock::kHost ? "host" : "device") +
                                 "\",\"instruction\":" + std::to_string(layer.instruction) + "}";
    executorch::runtime::event_tracer_log_profiling_delegate(&tracer, layer.name.c_str(),
                                                             executorch::runtime::kUnsetDelegateDebugIntId, layer.start,
                                                             layer.end, metadata.data(), metadata.size());
  }
  return layers.size() - kept + (bounded != nullptr ? bounded->left_out() - left_out_before : 0);
}

}  // namespace executorch_tensorrt
