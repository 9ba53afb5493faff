// Runs sequences in processes of their own: what ends the process is found as well, and can be shrunk.
#include "sequences.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace executorch_tensorrt::testing {
namespace {

constexpr int kBatch = 250;              // sequences of one process
constexpr unsigned kMostSeconds = 60;    // of one sequence, which is stuck else
constexpr long kMostOfLastWords = 6000;  // of a process that ended, in bytes

// Of the process that runs sequences, to the one that waits for it.
struct Progress {
  std::uint32_t seed;
  std::size_t step;
  char wrong[4096];
};

Progress& progress() {
  static auto* shared = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

struct Outcome {
  bool right = true;
  std::uint32_t seed = 0;
  std::size_t step = 0;  // that of the end has the number behind the last
  std::string text;      // what was wrong, or how the process ended
};

std::vector<std::size_t> all_steps(const Kind& kind, std::uint32_t seed) {
  std::vector<std::size_t> steps(kind.lines(seed).size());
  std::iota(steps.begin(), steps.end(), std::size_t{0});
  return steps;
}

bool run_here(const Kind& kind, std::uint32_t seed, const std::vector<std::size_t>& steps, bool verbose) {
  Progress& report = progress();
  report.seed = seed;
  report.step = 0;
  const std::vector<std::string> lines = verbose ? kind.lines(seed) : std::vector<std::string>();
  try {
    alarm(kMostSeconds);
    kind.run(seed, steps, [&](std::size_t step) {
      report.step = step;
      if (verbose) {
        std::fprintf(stderr, "%4zu  %s\n", step, step < lines.size() ? lines[step].c_str() : "the end");
      }
    });
    return true;
  } catch (const std::exception& error) {
    std::snprintf(report.wrong, sizeof(report.wrong), "%s", error.what());
    return false;
  }
}

std::string last_words(std::FILE* file) {
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::fseek(file, 0, SEEK_SET);
  std::string text(static_cast<std::size_t>(std::min(size, kMostOfLastWords)), '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

// What `sequences` gives in another process, which says true.
Outcome in_a_process(bool verbose, const std::function<bool()>& sequences) {
  Progress& report = progress();
  report = {};
  std::FILE* said = std::tmpfile();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!verbose) {
      dup2(fileno(said), STDERR_FILENO);
    }
    const bool right = sequences();
    if (!right) {
      std::fflush(nullptr);
      _exit(1);  // in the middle of it
    }
    std::exit(0);  // also of what sanitizers find at the end of a process
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome{status == 0, report.seed, report.step, report.wrong};
  if (!outcome.right && outcome.text.empty()) {
    outcome.text = WIFSIGNALED(status) ? std::string("the process ended: ") + strsignal(WTERMSIG(status))
                                       : "the process ended with " + std::to_string(WEXITSTATUS(status));
    outcome.text += "\n" + last_words(said);
  }
  std::fclose(said);
  return outcome;
}

Outcome run_steps(const Kind& kind, std::uint32_t seed, const std::vector<std::size_t>& steps) {
  return in_a_process(false, [&] { return run_here(kind, seed, steps, false); });
}

std::vector<std::size_t> without(const std::vector<std::size_t>& steps, std::size_t at, std::size_t count) {
  std::vector<std::size_t> rest(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(at));
  rest.insert(rest.end(), steps.begin() + static_cast<std::ptrdiff_t>(std::min(at + count, steps.size())), steps.end());
  return rest;
}

// Leaves out what can be left out, in pieces of half of it, of a quarter, and so on, until no step can.
std::vector<std::size_t> shortest(const Kind& kind, std::uint32_t seed, std::vector<std::size_t> steps) {
  std::size_t piece = std::max<std::size_t>(steps.size() / 2, 1);
  for (;;) {
    bool left_out = false;
    for (std::size_t at = 0; at < steps.size();) {
      std::vector<std::size_t> fewer = without(steps, at, piece);
      if (run_steps(kind, seed, fewer).right) {
        at += piece;
      } else {
        steps = std::move(fewer);
        left_out = true;
      }
    }
    if (piece == 1 && !left_out) {
      return steps;
    }
    piece = std::max<std::size_t>(piece / 2, 1);
  }
}

void show(const Kind& kind, const Outcome& found, const std::vector<std::size_t>& all) {
  std::fprintf(stderr, "%s: seed %u goes wrong at step %zu of %zu: %s\n", kind.name.c_str(), found.seed, found.step,
               all.size(), found.text.c_str());
  if (!run_steps(kind, found.seed, all).right) {
    const std::vector<std::size_t> steps = shortest(kind, found.seed, all);
    const std::vector<std::string> lines = kind.lines(found.seed);
    std::string numbers;
    std::fprintf(stderr, "The shortest that does, %zu steps:\n", steps.size());
    for (const std::size_t step : steps) {
      std::fprintf(stderr, "%4zu  %s\n", step, lines[step].c_str());
      numbers += (numbers.empty() ? "" : ",") + std::to_string(step);
    }
    const Outcome last = run_steps(kind, found.seed, steps);
    std::fprintf(stderr, "%s: %s\nAgain: --kind %s --from %u --count 1 --steps %s\n",
                 last.step < lines.size() ? std::to_string(last.step).c_str() : "the end", last.text.c_str(),
                 kind.name.c_str(), found.seed, numbers.c_str());
  } else {
    std::fprintf(stderr, "Alone it goes right: it needs the sequences before it, or the end of its process\n");
  }
}

}  // namespace

bool run_sequences(const Kind& kind, const Seeds& seeds) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::uint32_t> all(static_cast<std::size_t>(seeds.count));
  std::iota(all.begin(), all.end(), seeds.from);
  if (seeds.fresh) {
    all.push_back(std::random_device()());
    std::printf("%s: seeds %u to %u, and %u\n", kind.name.c_str(), seeds.from, all[all.size() - 2], all.back());
  }
  int wrong = 0;
  for (std::size_t at = 0; at < all.size() && wrong < seeds.most_wrong;) {
    const std::size_t end = std::min(at + kBatch, all.size());
    const Outcome outcome = in_a_process(seeds.verbose, [&] {
      return std::all_of(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](std::uint32_t seed) {
                           const auto& steps = seeds.steps;
                           return run_here(kind, seed, steps.empty() ? all_steps(kind, seed) : steps, seeds.verbose);
                         });
    });
    if (outcome.right) {
      at = end;
      continue;
    }
    ++wrong;
    at = static_cast<std::size_t>(std::find(all.begin(), all.end(), outcome.seed) - all.begin()) + 1;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "After %.1f s, ", taken.count());
    show(kind, outcome, seeds.steps.empty() ? all_steps(kind, outcome.seed) : seeds.steps);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %zu sequences in %.1f s, %d wrong\n", kind.name.c_str(), all.size(), taken.count(), wrong);
  return wrong == 0;
}

}  // namespace executorch_tensorrt::testing
