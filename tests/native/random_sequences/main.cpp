// Random sequences of calls: over the fake CUDA, and of the CPU engine of the blob whose file is given as an argument.
// Every kind from seed 1, as many as take it some seconds, and one seed that is new.
//
//   --kind NAME     this kind alone
//   --from SEED     from this seed on, without a new one
//   --count N       so many
//   --steps 3,8,11  of each of them these steps alone
//   --wrong N       gives up a kind after N sequences that went wrong; 1
//   --verbose       tells every step
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "cpu_world.h"
#include "device_world.h"

using namespace executorch_tensorrt::testing;

namespace {

void say_nothing(et_timestamp_t, et_pal_log_level_t, const char*, const char*, std::size_t, const char*, std::size_t) {}

std::vector<std::size_t> numbers(const std::string& text) {
  std::vector<std::size_t> out;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, ',');) out.push_back(std::stoul(number));
  return out;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int run(const std::vector<std::string>& arguments) {
  Seeds seeds;
  std::string only;
  bool fresh = true;
  std::vector<Kind> kinds = {make_kind<DeviceWorld>(
      "device", 6000, draw_device_steps, [](std::uint32_t seed) { return std::make_unique<DeviceWorld>(seed); })};
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const std::string& name = arguments[k];
    if (name == "--verbose") {
      seeds.verbose = true;
      continue;
    }
    if (name.rfind("--", 0) != 0) {
      kinds.push_back(cpu_kind(contents(name)));
      continue;
    }
    const std::string value = k + 1 < arguments.size() ? arguments[++k] : "";
    if (name == "--kind") {
      only = value;
    } else if (name == "--from") {
      seeds.from = static_cast<std::uint32_t>(std::stoul(value));
      fresh = false;
    } else if (name == "--count") {
      seeds.count = std::stoi(value);
    } else if (name == "--steps") {
      seeds.steps = numbers(value);
    } else if (name == "--wrong") {
      seeds.most_wrong = std::stoi(value);
    } else {
      std::fprintf(stderr, "got '%s', allowed --kind, --from, --count, --steps, --wrong, --verbose\n", name.c_str());
      return 2;
    }
  }
  bool right = true;
  for (const Kind& kind : kinds) {
    if (only.empty() || only == kind.name) {
      Seeds own = seeds;
      own.count = seeds.count > 0 ? seeds.count : kind.count;
      own.fresh = fresh;
      right = run_sequences(kind, own) && right;
    }
  }
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("ETRT_CUDART", ETRT_FAKE_CUDART, 1);
  executorch::runtime::runtime_init();
  executorch::runtime::register_pal(executorch::runtime::PalImpl::create(say_nothing, __FILE__));
  return run({argv + 1, argv + argc});
}
