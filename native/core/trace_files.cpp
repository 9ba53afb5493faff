#include "core/trace_files.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <utility>

#include "core/utf8.h"

namespace executorch_tensorrt {
namespace {

namespace json = boost::json;

enum Track : int { kPhaseTrack = 1, kHostLayerTrack = 2, kDeviceLayerTrack = 3 };

json::object track_name(std::int64_t pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", "thread_name"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", utf8(name)}}}};
}

json::object slice(const EngineTrace& trace, const std::string& name, int tid, std::uint64_t start, std::uint64_t end,
                   json::object args) {
  const auto us = [&](std::uint64_t ticks) { return static_cast<double>(ticks) / trace.ticks_per_us; };
  return {
      {"ph", "X"},  {"name", utf8(name)}, {"cat", tid == kPhaseTrack ? "phase" : "layer"}, {"pid", trace.process_id},
      {"tid", tid}, {"ts", us(start)},    {"dur", us(std::max(start, end) - start)},       {"args", std::move(args)}};
}

json::object call_args(const CallRecord& call) {
  return {{"call", call.number}, {"profile", call.profile}, {"request", call.request}};
}

// Of the slice of the whole call.
json::object whole_call_args(const CallRecord& call) {
  json::object args = call_args(call);
  if (call.device_ns) {
    args["device_ns"] = *call.device_ns;
  }
  if (call.returned_early) {
    args["returned_early"] = true;
  }
  return args;
}

struct LayerTimes {
  std::size_t profile = 0;
  std::string name;
  std::vector<double> ms;
};

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  if (values.size() % 2 == 1) {
    return values[middle];
  }
  const double upper = values[middle];
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

// In the order in which layers first ran.
std::vector<LayerTimes> layer_times(const EngineTrace& trace) {
  std::vector<LayerTimes> layers;
  std::map<std::pair<std::size_t, std::string>, std::size_t> places;
  for (const CallRecord& call : trace.calls) {
    for (const LayerRecord& layer : call.layers) {
      const auto [place, is_new] = places.try_emplace({call.profile, layer.name}, layers.size());
      if (is_new) {
        layers.push_back({call.profile, layer.name, {}});
      }
      const std::uint64_t ticks = std::max(layer.start, layer.end) - layer.start;
      layers[place->second].ms.push_back(static_cast<double>(ticks) / trace.ticks_per_us / 1000);
    }
  }
  return layers;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) {
    total += value;
  }
  return total;
}

}  // namespace

std::string perfetto_json(const EngineTrace& trace) {
  const std::string engine = "engine " + trace.engine_id + " (" + trace.engine_kind + ")";
  const json::object other{{"method", utf8(trace.method)},
                           {"engine_id", utf8(trace.engine_id)},
                           {"engine_kind", utf8(trace.engine_kind)},
                           {"calls_dropped", trace.calls_dropped}};
  std::string text = "{\"displayTimeUnit\":\"ns\",\"otherData\":" + json::serialize(other) + ",\"traceEvents\":[";
  // One by one: a document of all events takes ten times the memory of its text.
  const auto append = [&](const json::object& event) {
    text += text.back() == '[' ? "" : ",";
    text += json::serialize(event);
  };
  append({{"ph", "M"},
          {"name", "process_name"},
          {"pid", trace.process_id},
          {"tid", 0},
          {"args", {{"name", utf8("method " + trace.method)}}}});
  append(track_name(trace.process_id, kPhaseTrack, engine + ": phases, host clock"));
  append(track_name(trace.process_id, kHostLayerTrack, engine + ": layers, host clock"));
  append(track_name(trace.process_id, kDeviceLayerTrack, engine + ": layers, device clock"));
  for (const CallRecord& call : trace.calls) {
    for (const PhaseRecord& phase : call.phases) {
      const bool whole = &phase == &call.phases.back();
      append(slice(trace, phase.name, kPhaseTrack, phase.start, phase.end,
                   whole ? whole_call_args(call) : call_args(call)));
    }
    for (const LayerRecord& layer : call.layers) {
      const bool on_device = layer.clock == Clock::kDevice;
      json::object args = call_args(call);
      args["clock"] = on_device ? "device" : "host";
      append(slice(trace, layer.name, on_device ? kDeviceLayerTrack : kHostLayerTrack, layer.start, layer.end,
                   std::move(args)));
    }
  }
  return text + "]}";
}

std::string trex_json(const EngineTrace& trace) {
  const std::vector<LayerTimes> layers = layer_times(trace);
  double total = 0;
  for (const LayerTimes& layer : layers) {
    total += sum(layer.ms);
  }
  json::array records;
  records.push_back(json::object{{"count", trace.calls.size()}});
  for (const LayerTimes& layer : layers) {
    const double ms = sum(layer.ms);
    const std::string suffix = layer.profile == 0 ? "" : " [profile " + std::to_string(layer.profile) + "]";
    records.push_back(json::object{{"name", utf8(layer.name) + suffix},
                                   {"timeMs", ms},
                                   {"averageMs", ms / static_cast<double>(layer.ms.size())},
                                   {"medianMs", median(layer.ms)},
                                   {"percentage", total > 0 ? 100 * ms / total : 0.0}});
  }
  return json::serialize(records);
}

std::string safe_file_name(const std::string& name) {
  constexpr std::size_t kMaxSize = 80;
  std::string safe;
  for (const char c : name.substr(0, kMaxSize)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    safe += plain ? c : '_';
  }
  return safe.empty() ? "_" : safe;
}

}  // namespace executorch_tensorrt
