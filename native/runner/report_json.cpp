#include <boost/json.hpp>

#include "core/utf8.h"
#include "runner/latency.h"
#include "runner/report.h"

namespace executorch_tensorrt {
namespace {

namespace json = boost::json;
using executorch::runtime::EValue;

json::value request_json(const Request& request) {
  switch (request.kind) {
    case Request::Kind::kPinned:
      return request.index;
    case Request::Kind::kAuto:
      return "auto";
    default:
      return "default";
  }
}

json::object latency_json(std::vector<double> times) {
  const Latency latency = describe_times(std::move(times));
  return {{"iterations", latency.iterations},
          {"min", latency.min},
          {"median", latency.median},
          {"p90", latency.p90},
          {"p99", latency.p99},
          {"max", latency.max}};
}

json::array shape_json(const Shape& shape) {
  json::array dims;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    dims.push_back(shape[d]);
  }
  return dims;
}

json::array inputs_json(const std::vector<InputSet>& sets) {
  json::array out;
  for (const InputSet& set : sets) {
    json::array inputs;
    for (std::size_t i = 0; i < set.shapes.size(); ++i) {
      inputs.push_back(json::object{{"dtype", to_string(set.dtypes[i])}, {"shape", shape_json(set.shapes[i])}});
    }
    out.push_back(std::move(inputs));
  }
  return out;
}

json::array outputs_json(const std::vector<EValue>& outputs) {
  json::array out;
  for (const EValue& value : outputs) {
    if (!value.isTensor()) {
      out.push_back(json::object{{"dtype", executorch::runtime::tag_to_string(value.tag)}, {"shape", nullptr}});
      continue;
    }
    const executorch::aten::Tensor& tensor = value.toTensor();
    out.push_back(json::object{{"dtype", to_string(static_cast<ScalarType>(tensor.scalar_type()))},
                               {"shape", shape_json(make_shape(tensor.sizes()))}});
  }
  return out;
}

json::object group_json(const CallGroup& group) {
  json::array engines;
  for (const Selection& selection : group.selections) {
    engines.push_back(json::object{{"engine_id", utf8(selection.engine_id)}, {"profile", selection.profile}});
  }
  return {{"optimization_profile", request_json(group.request)},
          {"input_set", group.input_set},
          {"delegates", std::move(engines)},
          {"latency_us", group.times_us.empty() ? json::value() : latency_json(group.times_us)}};
}

}  // namespace

std::string report_json(const Report& report) {
  const Arguments& arguments = report.arguments;
  json::array requests;
  for (const Request& request : arguments.requests) {
    requests.push_back(request_json(request));
  }
  std::vector<double> all;
  json::array groups;
  for (const CallGroup& group : report.calls.groups) {
    all.insert(all.end(), group.times_us.begin(), group.times_us.end());
    groups.push_back(group_json(group));
  }
  json::array saved;
  for (const std::string& path : report.saved) {
    saved.push_back(json::value(utf8(path)));
  }
  const json::object document{
      {"program", utf8(arguments.program)},
      {"method", utf8(arguments.method)},
      {"optimization_profiles", std::move(requests)},
      {"load_ms", report.load_ms},
      {"first_call_us", report.calls.first_call_us},
      {"inputs", inputs_json(report.inputs)},
      {"outputs", outputs_json(report.calls.outputs)},
      {"latency_us", latency_json(std::move(all))},
      {"calls", std::move(groups)},
      {"etdump", arguments.etdump
                     ? json::value(json::object{{"path", utf8(*arguments.etdump)}, {"dropped", report.events_dropped}})
                     : json::value()},
      {"saved", std::move(saved)}};
  return json::serialize(document) + "\n";
}

}  // namespace executorch_tensorrt
