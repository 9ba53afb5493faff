// Text as UTF-8, which JSON is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/internal.h"

namespace executorch_tensorrt {

struct Utf8 {
  std::size_t size;  // in bytes
  char32_t code;     // the character; the byte where it is none
  bool is_valid;
};

// What a text has at one of its bytes. Overlong forms, surrogates and what lies beyond U+10FFFF are no characters.
Utf8 utf8_at(std::string_view text, std::size_t at);

// Names and paths come from anywhere: bytes that are no UTF-8 become U+FFFD.
ETRT_INTERNAL std::string utf8(const std::string& text);

}  // namespace executorch_tensorrt
