#include "core/utf8.h"

namespace executorch_tensorrt {
namespace {

constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by the number of bytes

}  // namespace

Utf8 utf8_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t size = lead < 0x80 ? 1 : (lead >> 5) == 6 ? 2 : (lead >> 4) == 14 ? 3 : (lead >> 3) == 30 ? 4 : 0;
  const Utf8 invalid{1, lead, false};
  if (size == 0 || at + size > text.size()) {
    return invalid;
  }
  char32_t code = size == 1 ? lead : lead & (0x7fu >> size);
  for (const char c : text.substr(at + 1, size - 1)) {
    if ((static_cast<unsigned char>(c) >> 6) != 2) {
      return invalid;
    }
    code = (code << 6) | (static_cast<unsigned char>(c) & 0x3fu);
  }
  const bool is_character = code >= kSmallest[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return is_character ? Utf8{size, code, true} : invalid;
}

std::string utf8(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8 found = utf8_at(text, at);
    out += found.is_valid ? text.substr(at, found.size) : "\xef\xbf\xbd";
    at += found.size;
  }
  return out;
}

}  // namespace executorch_tensorrt
