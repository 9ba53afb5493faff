// What messages put around names and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/internal.h"

namespace executorch_tensorrt {

// A text in one line that no terminal or log takes for more than text: control characters, line separators, marks that
// turn the direction and bytes that are no UTF-8 as "\x1b", "\u202e". Names come from files of others.
ETRT_INTERNAL std::string printable(std::string text);

inline std::string quoted(std::string_view text) { return "'" + printable(std::string(text)) + "'"; }

// Two lower-case digits a byte.
std::string hexadecimal(const std::uint8_t* bytes, std::size_t size);

}  // namespace executorch_tensorrt
