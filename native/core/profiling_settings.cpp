#include "core/profiling_settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace executorch_tensorrt {
namespace {

template <typename T>
struct Word {
  std::string_view name;
  T value;
};

constexpr Word<ProfileLevel> kLevels[] = {
    {"off", ProfileLevel::kOff},
    {"delegate", ProfileLevel::kDelegate},
    {"phases", ProfileLevel::kPhases},
    {"layers", ProfileLevel::kLayers},
};

constexpr Word<ProfileFormat> kFormats[] = {
    {"etdump", ProfileFormat::kEtdump},
    {"perfetto", ProfileFormat::kPerfetto},
    {"trex", ProfileFormat::kTrex},
};

Status wrong_value(const char* key, std::string_view got, const std::string& allowed) {
  return invalid_argument("option '" + std::string(key) + "': got '" + std::string(got) + "', allowed " + allowed);
}

template <typename T, std::size_t N>
Status parse(const char* key, const Word<T> (&words)[N], std::string_view name, T& out) {
  std::string allowed;
  for (const Word<T>& word : words) {
    if (word.name == name) {
      out = word.value;
      return {};
    }
    allowed += (allowed.empty() ? "'" : ", '") + std::string(word.name) + "'";
  }
  return wrong_value(key, name, allowed);
}

template <typename T, std::size_t N>
std::string_view name_of(const Word<T> (&words)[N], T value) {
  for (const Word<T>& word : words) {
    if (word.value == value) {
      return word.name;
    }
  }
  return "";
}

}  // namespace

std::string_view to_string(ProfileLevel level) { return name_of(kLevels, level); }
std::string_view to_string(ProfileFormat format) { return name_of(kFormats, format); }

Status parse_level(std::string_view word, ProfileLevel& out) { return parse(kProfileLevelKey, kLevels, word, out); }
Status parse_format(std::string_view word, ProfileFormat& out) { return parse(kProfileFormatKey, kFormats, word, out); }

Status parse_path_prefix(std::string_view path, std::string& out) {
  if (path.empty()) {
    return wrong_value(kProfilePathKey, path, "a folder that exists");
  }
  out = path;
  return {};
}

Status check_settings(const ProfilingSettings& settings) {
  if (!settings.writes_sidecar()) {
    return {};
  }
  if (settings.path_prefix.empty()) {
    return invalid_argument("option '" + std::string(kProfileFormatKey) + "': '" +
                            std::string(to_string(settings.format)) + "' writes files: give '" + kProfilePathKey +
                            "' a folder");
  }
  struct stat info{};
  if (stat(settings.path_prefix.c_str(), &info) != 0) {
    return wrong_value(kProfilePathKey, settings.path_prefix,
                       std::string("a folder that can be written: ") + std::strerror(errno));
  }
  if (!S_ISDIR(info.st_mode)) {
    return wrong_value(kProfilePathKey, settings.path_prefix, "a folder that can be written: it is a file");
  }
  if (access(settings.path_prefix.c_str(), W_OK | X_OK) != 0) {
    return wrong_value(kProfilePathKey, settings.path_prefix,
                       std::string("a folder that can be written: ") + std::strerror(errno));
  }
  return {};
}

}  // namespace executorch_tensorrt
