// Times of calls, and what is told of them.
#pragma once

#include <string>
#include <vector>

namespace executorch_tensorrt {

// In the unit of the times.
struct Latency {
  std::size_t iterations = 0;
  double min = 0;
  double median = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

// Percentiles as NumPy interpolates them. `times` is not empty.
Latency describe_times(std::vector<double> times);

// "12.3 µs", "1.23 ms", "4.56 s"
std::string microseconds_text(double value);

}  // namespace executorch_tensorrt
