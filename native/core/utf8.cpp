#include "core/utf8.h"

#include <algorithm>

namespace executorch_tensorrt {

std::string utf8(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80         ? 1
                               : (lead >> 5) == 6  ? 2
                               : (lead >> 4) == 14 ? 3
                               : (lead >> 3) == 30 ? 4
                                                   : 0;
    const auto is_tail = [](char c) { return (static_cast<unsigned char>(c) >> 6) == 2; };
    if (length == 0 || at + length > text.size() ||
        !std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                     text.begin() + static_cast<std::ptrdiff_t>(at + length), is_tail)) {
      out += "\xef\xbf\xbd";
      ++at;
      continue;
    }
    out.append(text, at, length);
    at += length;
  }
  return out;
}

}  // namespace executorch_tensorrt
