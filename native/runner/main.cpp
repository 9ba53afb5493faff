// etrt_runner: runs a method of a .pte program without Python and tells the optimization profiles used, and times.
#include <executorch/runtime/platform/runtime.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

#include "core/profiling_settings.h"
#include "core/text.h"
#include "process/log.h"
#include "process/write_file.h"
#include "program/checked_module.h"
#include "runner/arguments.h"
#include "runner/calls.h"
#include "runner/failure.h"
#include "runner/inputs.h"
#include "runner/outputs.h"
#include "runner/report.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::BackendOption;

enum ExitCode : int { kSuccess = 0, kFailure = 1, kMistake = 2 };

void require_file(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) {
    throw UserError(errno == ENOENT ? "no program at '" + path + "'" : "'" + path + "': " + std::strerror(errno));
  }
  if (S_ISDIR(found.st_mode)) {
    throw UserError("'" + path + "' is a folder; give a .pte file");
  }
}

// Finds out before long work whether its result can be written.
void require_folder_of(const std::string& path) {
  const std::filesystem::path file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder)) {
    throw UserError("no folder '" + folder.string() + "' for '" + file.filename().string() + "'; make it first");
  }
}

std::vector<BackendOption> load_options(const Arguments& arguments) {
  std::vector<BackendOption> options;
  const auto add = [&](const char* key, const std::optional<std::string>& value) {
    if (value) {
      options.push_back(value_of(backend_option(key, *value)));
    }
  };
  add(kProfileLevelKey, arguments.profile_level);
  add(kProfileFormatKey, arguments.profile_format);
  add(kProfilePathKey, arguments.profile_path_prefix);
  return options;
}

std::size_t write_etdump(CheckedModule& module, const std::string& path) {
  const std::optional<std::string> dump = module.etdump()->take();
  if (Status status = write_file(path, dump.value_or("")); !status.ok()) {
    throw UserError(status.message());
  }
  return module.etdump()->events_dropped();
}

void run(const Arguments& arguments) {
  require_file(arguments.program);
  if (arguments.etdump) {
    require_folder_of(*arguments.etdump);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto module =
      value_of(CheckedModule::open(arguments.program, CheckedModule::LoadMode::Mmap, arguments.etdump.has_value()));
  const MethodInfo info = value_of(module->describe(arguments.method));
  const std::chrono::duration<double, std::milli> opening = std::chrono::steady_clock::now() - begin;
  const std::vector<InputSet> inputs = read_inputs(arguments.inputs, info);
  const auto load_begin = std::chrono::steady_clock::now();
  if (Status status = module->load_method(info, load_options(arguments)); !status.ok()) {
    throw UserError(status.message());
  }
  const std::chrono::duration<double, std::milli> loading = std::chrono::steady_clock::now() - load_begin;
  const CallResults calls = make_calls(*module, info, inputs, arguments);
  Report report{arguments, (opening + loading).count(), inputs, calls, 0, {}};
  if (arguments.etdump) {
    report.events_dropped = write_etdump(*module, *arguments.etdump);
  }
  if (arguments.save_outputs) {
    report.saved = save_outputs(calls.outputs, *arguments.save_outputs);
  }
  std::fputs((arguments.json ? report_json(report) : report_text(report)).c_str(), stdout);
  if (std::fflush(stdout) != 0) {
    throw RunError(std::string("cannot print: ") + std::strerror(errno));
  }
}

// A message, with the option in place of what C++ and Python have for it.
std::string with_options(std::string text) {
  const std::string guard = "use OptimizationProfileGuard(";
  const std::string automatic = ") or automatic selection";
  const std::size_t begin = text.find(guard);
  const std::size_t end = text.find(automatic, begin);
  if (begin != std::string::npos && end != std::string::npos) {
    text.replace(end, automatic.size(), " or auto").replace(begin, guard.size(), "use --optimization-profile ");
  }
  return text;
}

int tell(const char* message, const char* more, int code) {
  std::fprintf(stderr, "etrt_runner: %s%s\n", printable(with_options(message)).c_str(), more);
  return code;
}

int main_of(int argc, char** argv) {
  try {
    const std::optional<Arguments> arguments = parse_arguments(argc, argv);
    if (!arguments) {
      return kSuccess;
    }
    executorch::runtime::runtime_init();
    if (!arguments->debug) {
      silence_log();  // what it says, the runner's messages say better
    }
    run(*arguments);
    return kSuccess;
  } catch (const UsageError& error) {
    return tell(error.what(), " See 'etrt_runner --help'.", kMistake);
  } catch (const UserError& error) {
    return tell(error.what(), "", kMistake);
  } catch (const std::bad_alloc&) {
    return tell("out of memory", "", kMistake);
  } catch (const std::exception& error) {
    return tell(error.what(), "", kFailure);
  }
}

}  // namespace
}  // namespace executorch_tensorrt

int main(int argc, char** argv) { return executorch_tensorrt::main_of(argc, argv); }
