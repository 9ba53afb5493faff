#include "core/text.h"

#include "core/utf8.h"

namespace executorch_tensorrt {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

struct Range {
  char32_t first, last;
};
// Unicode's controls, separators of lines, invisible characters and directions.
constexpr Range kHidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                             {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                             {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

bool is_hidden(char32_t code) {
  for (const Range& range : kHidden) {
    if (range.first <= code && code <= range.last) {
      return true;
    }
  }
  return false;
}

void append_escaped(std::string& out, char32_t code) {
  const int digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
  out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int k = digits - 1; k >= 0; --k) {
    out += kDigits[(code >> (4 * k)) & 15];
  }
}

}  // namespace

std::string printable(std::string text) {
  std::string out;
  std::size_t copied = 0;  // of the text
  for (std::size_t at = 0; at < text.size();) {
    const Utf8 found = utf8_at(text, at);
    if (!found.is_valid || is_hidden(found.code)) {
      out.append(text, copied, at - copied);
      append_escaped(out, found.code);
      copied = at + found.size;
    }
    at += found.size;
  }
  return copied == 0 ? text : out.append(text, copied);
}

std::string hexadecimal(const std::uint8_t* bytes, std::size_t size) {
  std::string text;
  text.reserve(2 * size);
  for (std::size_t k = 0; k < size; ++k) {
    text += kDigits[bytes[k] >> 4];
    text += kDigits[bytes[k] & 15];
  }
  return text;
}

}  // namespace executorch_tensorrt
