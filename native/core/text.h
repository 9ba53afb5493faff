// What messages put around names and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace executorch_tensorrt {

inline std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Two lower-case digits a byte.
inline std::string hexadecimal(const std::uint8_t* bytes, std::size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (std::size_t k = 0; k < size; ++k) {
    text += kDigits[bytes[k] >> 4];
    text += kDigits[bytes[k] & 15];
  }
  return text;
}

}  // namespace executorch_tensorrt
