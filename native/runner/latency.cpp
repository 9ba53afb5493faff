#include "runner/latency.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace executorch_tensorrt {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

}  // namespace

Latency describe_times(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times.size(),           times.front(),           percentile(times, 0.5),
          percentile(times, 0.9), percentile(times, 0.99), times.back()};
}

std::string microseconds_text(double value) {
  char text[32];
  if (value < 999.5) {
    std::snprintf(text, sizeof(text), "%.3g µs", value);
  } else if (value < 999.5e3) {
    std::snprintf(text, sizeof(text), "%.3g ms", value / 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.3g s", value / 1e6);
  }
  return text;
}

}  // namespace executorch_tensorrt
