#include <algorithm>
#include <cstdio>

#include "runner/latency.h"
#include "runner/report.h"

namespace executorch_tensorrt {
namespace {

using Row = std::vector<std::string>;

// Columns, of which UTF-8's continuation bytes take none.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// Columns two spaces apart, left-aligned.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], width_of(row[c]));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c] + std::string(widths[c] - width_of(row[c]) + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string request_text(const Request& request) {
  return request.kind == Request::Kind::kPinned ? std::to_string(request.index) : to_string(request);
}

template <typename Items, typename Text>
std::string joined(const Items& items, const char* between, Text&& text) {
  std::string out;
  for (const auto& item : items) {
    out += (out.empty() ? "" : between) + text(item);
  }
  return out.empty() ? "-" : out;
}

std::string shapes_text(const InputSet& set) {
  return joined(set.shapes, " ", [](const Shape& shape) { return to_string(shape); });
}

Row latency_cells(const std::vector<double>& times) {
  if (times.empty()) {
    return {"0", "-", "-", "-"};
  }
  const Latency latency = describe_times(times);
  return {std::to_string(latency.iterations), microseconds_text(latency.median), microseconds_text(latency.p90),
          microseconds_text(latency.p99)};
}

Row row_of(const Row& first, const std::vector<double>& times) {
  Row row = first;
  const Row cells = latency_cells(times);
  row.insert(row.end(), cells.begin(), cells.end());
  return row;
}

std::string calls_table(const Report& report) {
  std::vector<Row> rows{{"request", "inputs", "profiles used", "calls", "median", "p90", "p99"}};
  std::vector<double> all;
  for (const CallGroup& group : report.calls.groups) {
    const std::string profiles =
        joined(group.selections, " ", [](const Selection& used) { return std::to_string(used.profile); });
    rows.push_back(
        row_of({request_text(group.request), shapes_text(report.inputs[group.input_set]), profiles}, group.times_us));
    all.insert(all.end(), group.times_us.begin(), group.times_us.end());
  }
  if (report.calls.groups.size() > 1) {
    rows.push_back(row_of({"all", "", ""}, all));
  }
  return table(rows);
}

std::string engines_line(const std::vector<Selection>& selections) {
  return joined(selections, " ", [](const Selection& used) { return used.engine_id.empty() ? "?" : used.engine_id; });
}

}  // namespace

std::string report_text(const Report& report) {
  char loading[32];
  std::snprintf(loading, sizeof(loading), "%.1f ms", report.load_ms);
  std::string text = calls_table(report);
  text += "Engines: " + engines_line(report.calls.groups.front().selections) + "\n";
  text += std::string("Loading ") + loading + "; first call " + microseconds_text(report.calls.first_call_us) + "\n";
  if (report.arguments.etdump) {
    const std::string dropped = std::to_string(report.events_dropped) + " did not fit";
    text += "Events in " + *report.arguments.etdump + (report.events_dropped > 0 ? ", " + dropped : "") + "\n";
  }
  for (const std::string& path : report.saved) {
    text += "Saved " + path + "\n";
  }
  return text;
}

}  // namespace executorch_tensorrt
