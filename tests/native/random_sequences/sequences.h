// Sequences of steps that are drawn from a seed and run against what they must give. One that goes wrong is run again
// with steps left out, until none can be left out any more, and that one is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace executorch_tensorrt::testing {

// Numbers of a seed, the same with every standard library: their distributions differ, the engine does not.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : engine_(seed) {}

  // 0 .. count - 1
  int below(int count) { return static_cast<int>(std::uint64_t{engine_()} * static_cast<std::uint64_t>(count) >> 32); }
  int between(int first, int last) { return first + below(last - first + 1); }
  bool one_in(int count) { return below(count) == 0; }
  std::uint32_t seed() { return static_cast<std::uint32_t>(engine_()); }

  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }
  template <typename T, std::size_t N>
  const T& of(const T (&values)[N]) {
    return values[below(static_cast<int>(N))];
  }
  // The index of one of them, as often as it weighs.
  int weighed(const std::vector<int>& weights) {
    int sum = 0;
    for (const int weight : weights) sum += weight;
    int at = below(sum);
    int k = 0;
    while (at >= weights[static_cast<std::size_t>(k)]) at -= weights[static_cast<std::size_t>(k++)];
    return k;
  }

 private:
  std::mt19937 engine_;
};

// What a step or the end of a sequence finds.
class Wrong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Any subset of a sequence can be run: a step without what it needs does nothing. What it decides itself, it draws from
// a seed of its own.
template <typename World>
struct Step {
  std::string text;  // a line
  std::function<void(World&)> run;
};

// Sanitizers take their time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSlowness = 4;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kSlowness = 4;
#else
constexpr int kSlowness = 1;
#endif
#else
constexpr int kSlowness = 1;
#endif

// One kind of sequences, whatever world they happen in.
struct Kind {
  std::string name;
  int count = 0;  // of sequences in CI
  // The lines of the sequence of a seed.
  std::function<std::vector<std::string>(std::uint32_t seed)> lines;
  // Runs those of its steps, in order, and calls `before` with the number of each; throws Wrong.
  std::function<void(std::uint32_t seed, const std::vector<std::size_t>& steps,
                     const std::function<void(std::size_t)>& before)>
      run;
};

// A world is looked at for the last time in its end().
template <typename World>
Kind make_kind(std::string name, int count, std::function<std::vector<Step<World>>(Draw&)> draw,
               std::function<std::unique_ptr<World>(std::uint32_t seed)> begin) {
  const auto drawn = [draw](std::uint32_t seed) {
    Draw of_seed(seed);
    return draw(of_seed);
  };
  Kind kind{std::move(name), count / kSlowness, nullptr, nullptr};
  kind.lines = [drawn](std::uint32_t seed) {
    std::vector<std::string> lines;
    for (const Step<World>& step : drawn(seed)) lines.push_back(step.text);
    return lines;
  };
  kind.run = [drawn, begin](std::uint32_t seed, const std::vector<std::size_t>& steps, const auto& before) {
    const std::vector<Step<World>> all = drawn(seed);
    const std::unique_ptr<World> world = begin(seed);
    for (const std::size_t step : steps) {
      before(step);
      all.at(step).run(*world);
    }
    before(all.size());
    world->end();
  };
  return kind;
}

struct Seeds {
  std::uint32_t from = 1;
  int count = 0;
  bool fresh = false;              // and one more, that nobody has seen
  bool verbose = false;            // every step of them, as it is run
  std::vector<std::size_t> steps;  // of each of them these alone; all, if there are none
  int most_wrong = 1;              // how many sequences are shrunk and shown before the kind is given up
};

// Whether all went right.
bool run_sequences(const Kind& kind, const Seeds& seeds);

}  // namespace executorch_tensorrt::testing
