#include "runner/arguments.h"

#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "core/profiling_settings.h"
#include "core/text.h"
#include "runner/failure.h"

namespace executorch_tensorrt {
namespace {

constexpr std::size_t kMaxDigits = 9;  // fits every integer type here

constexpr char kUsage[] = "Usage: etrt_runner [OPTIONS] PROGRAM\n";
constexpr char kAbout[] =
    "\n"
    "Run a method of a .pte program and print the optimization profile of each\n"
    "engine, and times.\n"
    "\n"
    "Give one --input per method input, in order: .npy files. Give the method's\n"
    "inputs again for further calls with other shapes: the sets take turns, and so\n"
    "do the requests of a list such as '--optimization-profile 1,0,0,auto'.\n"
    "\n"
    "  etrt_runner model.pte --input prompt.npy --input token.npy \\\n"
    "    --optimization-profile 1,0 --iterations 100\n"
    "\n"
    "Exit codes: 0 success; 2 a mistake in what was given (file, input, option),\n"
    "told in one line; 1 another failure.\n"
    "\n"
    "Options:\n";

[[noreturn]] void invalid(const char* option, const std::string& problem) {
  throw UsageError(std::string("Invalid value for '--") + option + "': " + problem);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::size_t number_from(std::size_t minimum, const char* option, const std::string& text) {
  if (!is_number(text) || std::stoul(text) < minimum) {
    invalid(option, "got " + quoted(text) + ", allowed numbers from " + std::to_string(minimum) + ".");
  }
  return std::stoul(text);
}

std::vector<Request> requests_of(const char* option, const std::string& text) {
  std::vector<Request> requests;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word != "auto" && !is_number(word)) {
      invalid(option, "got " + quoted(word) + ", allowed 'auto' or an index from 0, or a list such as '1,0,auto'.");
    }
    requests.push_back(word == "auto" ? Request::automatic() : Request::pinned(std::stoi(word)));
    begin = end + 1;
  }
  return requests;
}

template <typename Word>
void check_word(const char* option, Status (*parse)(std::string_view, Word&), const std::string& text) {
  Word word;
  if (Status status = parse(text, word); !status.ok()) {
    invalid(option, status.message() + ".");
  }
}

struct Option {
  const char* name;
  const char* value;  // nullptr for a flag
  const char* help;
  void (*read)(const char* name, const std::string& text, Arguments& out);
};

constexpr Option kOptions[] = {
    {"input", "FILE", "One method input, in order; see above.",
     [](const char*, const std::string& text, Arguments& out) { out.inputs.push_back(text); }},
    {"method", "NAME", "The method to run. [default: forward]",
     [](const char*, const std::string& text, Arguments& out) { out.method = text; }},
    {"optimization-profile", "auto|N|LIST", "What the calls request. [default: no request, which is profile 0]",
     [](const char* name, const std::string& text, Arguments& out) { out.requests = requests_of(name, text); }},
    {"iterations", "N", "Calls to time. [default: one round through requests and inputs]",
     [](const char* name, const std::string& text, Arguments& out) { out.iterations = number_from(1, name, text); }},
    {"warmup", "N", "Rounds through requests and inputs before those. [default: 0]",
     [](const char* name, const std::string& text, Arguments& out) { out.warmup = number_from(0, name, text); }},
    {"profile-level", "WORD", "What engines trace: off, delegate, phases or layers.",
     [](const char* name, const std::string& text, Arguments& out) {
       check_word(name, parse_level, text);
       out.profile_level = text;
     }},
    {"profile-format", "WORD", "Where to: etdump, perfetto or trex. [default: etdump]",
     [](const char* name, const std::string& text, Arguments& out) {
       check_word(name, parse_format, text);
       out.profile_format = text;
     }},
    {"profile-path-prefix", "DIR", "The folder for perfetto and trex files. It has to exist.",
     [](const char*, const std::string& text, Arguments& out) { out.profile_path_prefix = text; }},
    {"etdump", "FILE", "Write the events of the timed calls.",
     [](const char*, const std::string& text, Arguments& out) { out.etdump = text; }},
    {"save-outputs", "DIR", "Folder for output_N.npy files of the last call; made if need be.",
     [](const char*, const std::string& text, Arguments& out) { out.save_outputs = text; }},
    {"json", nullptr, "Print the report as JSON.",
     [](const char*, const std::string&, Arguments& out) { out.json = true; }},
    {"debug", nullptr, "Show what ExecuTorch logs.",
     [](const char*, const std::string&, Arguments& out) { out.debug = true; }},
};
constexpr int kNumOptions = static_cast<int>(std::size(kOptions));
enum : int { kHelp = kNumOptions, kVersion, kFirst = 256 };  // past the characters of short options

void print_help() {
  std::printf("%s%s", kUsage, kAbout);
  const auto print = [](const std::string& option, const char* help) {
    std::printf("  %s\n      %s\n", option.c_str(), help);
  };
  for (const Option& option : kOptions) {
    print(std::string("--") + option.name + (option.value != nullptr ? std::string(" ") + option.value : ""),
          option.help);
  }
  print("--version", "Show the version and exit.");
  print("-h, --help", "Show this message and exit.");
}

std::vector<option> long_options() {
  std::vector<option> out;
  for (int k = 0; k < kNumOptions; ++k) {
    out.push_back(
        {kOptions[k].name, kOptions[k].value != nullptr ? required_argument : no_argument, nullptr, kFirst + k});
  }
  out.push_back({"version", no_argument, nullptr, kFirst + kVersion});
  out.push_back({"help", no_argument, nullptr, 'h'});
  out.push_back({nullptr, 0, nullptr, 0});
  return out;
}

void check(const Arguments& arguments) {
  const bool traces = arguments.profile_level && *arguments.profile_level != "off";
  const bool has_files = arguments.profile_format && *arguments.profile_format != "etdump";
  if (traces && !arguments.etdump && !has_files) {
    throw UsageError("--profile-level has no effect: got no --etdump, allowed with --etdump FILE; add it.");
  }
}

}  // namespace

std::optional<Arguments> parse_arguments(int argc, char** argv) {
  const std::vector<option> options = long_options();
  Arguments arguments;
  opterr = 0;  // the messages are ours
  for (int found = 0; (found = getopt_long(argc, argv, ":h", options.data(), nullptr)) != -1;) {
    const std::string word = argv[optind - 1];
    switch (found) {
      case 'h':
        print_help();
        return std::nullopt;
      case kFirst + kVersion:
        std::puts("etrt_runner " ETRT_VERSION " (executorch " ETRT_EXECUTORCH_VERSION ")");
        return std::nullopt;
      case ':':
        throw UsageError("Option " + quoted(word) + " requires an argument.");
      case '?':
        if (optopt >= kFirst || optopt == 'h') {
          throw UsageError("Option " + quoted(word.substr(0, word.find('='))) + " does not take a value.");
        }
        throw UsageError("No such option " + quoted(optopt == 0 ? word : std::string{'-', char(optopt)}) + ".");
      default: {
        const Option& option = kOptions[found - kFirst];
        option.read(option.name, option.value != nullptr ? optarg : "", arguments);
      }
    }
  }
  if (optind == argc) {
    throw UsageError("Missing argument 'PROGRAM'.");
  }
  if (optind + 1 < argc) {
    throw UsageError(std::string("Got unexpected extra argument (") + argv[optind + 1] + ").");
  }
  arguments.program = argv[optind];
  check(arguments);
  return arguments;
}

}  // namespace executorch_tensorrt
