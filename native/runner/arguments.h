// The command line of etrt_runner.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/selection.h"

namespace executorch_tensorrt {

struct Arguments {
  std::string program;
  std::vector<std::string> inputs;  // paths of .npy files
  std::string method = "forward";
  std::vector<Request> requests{Request{}};  // take turns
  std::optional<std::size_t> iterations;     // calls; by default one round of turns
  std::size_t warmup = 0;                    // rounds
  std::optional<std::string> profile_level;
  std::optional<std::string> profile_format;
  std::optional<std::string> profile_path_prefix;
  std::optional<std::string> etdump;
  std::optional<std::string> save_outputs;
  bool json = false;
  bool debug = false;
};

// Nothing when the command line asks for help or the version, which are printed. Throws UsageError.
std::optional<Arguments> parse_arguments(int argc, char** argv);

}  // namespace executorch_tensorrt
