// What is traced and where to: the words that options, compile specs and the process-wide control share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

enum class ProfileLevel : std::uint8_t { kOff, kDelegate, kPhases, kLayers };

// kEtdump: the caller's event tracer alone. The others write a sidecar file as well.
enum class ProfileFormat : std::uint8_t { kEtdump, kPerfetto, kTrex };

struct ProfilingSettings {
  ProfileLevel level = ProfileLevel::kOff;
  ProfileFormat format = ProfileFormat::kEtdump;
  std::string path_prefix;  // the folder for sidecars

  friend bool operator==(const ProfilingSettings& a, const ProfilingSettings& b) {
    return a.level == b.level && a.format == b.format && a.path_prefix == b.path_prefix;
  }

  bool writes_sidecar() const { return level != ProfileLevel::kOff && format != ProfileFormat::kEtdump; }
};

inline constexpr char kProfileLevelKey[] = "torchtrt_profile_level";
inline constexpr char kProfileFormatKey[] = "torchtrt_profile_format";
inline constexpr char kProfilePathKey[] = "torchtrt_profile_path_prefix";

std::string_view to_string(ProfileLevel level);
std::string_view to_string(ProfileFormat format);

// kInvalidArgument, naming what is allowed, for any other word; an empty path.
ETRT_INTERNAL Status parse_level(std::string_view word, ProfileLevel& out);
ETRT_INTERNAL Status parse_format(std::string_view word, ProfileFormat& out);
Status parse_path_prefix(std::string_view path, std::string& out);

// kInvalidArgument when a sidecar is asked for and its folder is missing or cannot be written.
Status check_settings(const ProfilingSettings& settings);

}  // namespace executorch_tensorrt
