#include "runner/npy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace executorch_tensorrt {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // of the data in a file that NumPy writes

constexpr struct {
  ScalarType dtype;
  std::string_view descr;
} kTypes[] = {
    {ScalarType::kFloat32, "<f4"}, {ScalarType::kFloat64, "<f8"}, {ScalarType::kFloat16, "<f2"},
    {ScalarType::kInt64, "<i8"},   {ScalarType::kInt32, "<i4"},   {ScalarType::kInt16, "<i2"},
    {ScalarType::kInt8, "|i1"},    {ScalarType::kUInt8, "|u1"},   {ScalarType::kBool, "|b1"},
};

std::string known_descrs() {
  std::string text;
  for (const auto& known : kTypes) {
    text += (text.empty() ? "'" : ", '") + std::string(known.descr) + "'";
  }
  return text;
}

// Reads the header, a Python dict of a string, a bool and a tuple of sizes, from left to right.
class Header {
 public:
  explicit Header(std::string_view text) : text_(text) {}

  // Whether `expected` comes next, after spaces; passes over it.
  bool take(std::string_view expected) {
    skip_spaces();
    if (text_.substr(at_, expected.size()) != expected) {
      return false;
    }
    at_ += expected.size();
    return true;
  }

  std::optional<std::string_view> string() {
    const char* quote = take("'") ? "'" : take("\"") ? "\"" : nullptr;
    if (quote == nullptr) {
      return std::nullopt;
    }
    const std::size_t end = text_.find_first_of("'\"\\\n", at_);
    if (end == std::string_view::npos || text_[end] != *quote) {
      return std::nullopt;
    }
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }

  std::optional<std::int64_t> size() {
    skip_spaces();
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        return std::nullopt;
      }
    }
    return at_ > begin ? std::optional(value) : std::nullopt;
  }

  // "(3, 4)", "(3,)", "()"
  bool tuple(std::vector<std::int64_t>& out) {
    if (!take("(")) {
      return false;
    }
    while (!take(")")) {
      const auto dim = size();
      if (!dim) {
        return false;
      }
      out.push_back(*dim);
      if (!take(",")) {
        return out.size() > 1 && take(")");
      }
    }
    return true;
  }

  bool ends() {
    skip_spaces();
    return at_ == text_.size();
  }

 private:
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \n", at_), text_.size()); }

  std::string_view text_;
  std::size_t at_ = 0;
};

struct Fields {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// One entry of the dict, "'descr': '<f4'". False when it is none of the three, or comes twice.
bool read_field(Header& header, Fields& out) {
  const auto key = header.string();
  if (!key || !header.take(":")) {
    return false;
  }
  if (*key == "descr" && !out.descr) {
    out.descr = header.string();
    return out.descr.has_value();
  }
  if (*key == "fortran_order" && !out.fortran_order) {
    out.fortran_order = header.take("True");
    return *out.fortran_order || header.take("False");
  }
  return *key == "shape" && !out.shape && header.tuple(out.shape.emplace());
}

bool read_fields(std::string_view text, Fields& out) {
  Header header(text);
  if (!header.take("{")) {
    return false;
  }
  while (!header.take("}")) {
    if (!read_field(header, out)) {
      return false;
    }
    if (!header.take(",")) {
      return header.take("}") && header.ends();
    }
  }
  return header.ends();
}

// The bytes of an array, if they can be counted.
std::optional<std::size_t> size_of(const std::vector<std::int64_t>& dims, std::size_t element_size) {
  std::size_t size = element_size;
  for (const std::int64_t dim : dims) {
    if (__builtin_mul_overflow(size, static_cast<std::size_t>(dim), &size)) {
      return std::nullopt;
    }
  }
  return size;
}

// Where the header's text begins and how long it is; refuses what ends before it does.
Status find_header(std::string_view bytes, std::size_t& begin, std::size_t& size) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return invalid_argument("it does not begin with NumPy's magic bytes");
  }
  const std::size_t major = bytes.size() > 7 ? static_cast<unsigned char>(bytes[6]) : 0;
  const std::size_t minor = bytes.size() > 7 ? static_cast<unsigned char>(bytes[7]) : 0;
  if (major < 1 || major > 3 || minor != 0) {
    return invalid_argument("got format version " + std::to_string(major) + "." + std::to_string(minor) +
                            ", allowed 1.0, 2.0, 3.0");
  }
  const std::size_t length_size = major == 1 ? 2 : 4;
  begin = 8 + length_size;
  size = 0;
  for (std::size_t k = 0; k < length_size && 8 + k < bytes.size(); ++k) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + k])) << (8 * k);
  }
  if (bytes.size() < begin || bytes.size() - begin < size) {
    return invalid_argument("it ends in its header");
  }
  return {};
}

}  // namespace

Result<NpyView> parse_npy(std::string_view bytes) {
  std::size_t begin = 0;
  std::size_t size = 0;
  if (Status status = find_header(bytes, begin, size); !status.ok()) {
    return status;
  }
  Fields fields;
  if (!read_fields(bytes.substr(begin, size), fields) || !fields.descr || !fields.fortran_order || !fields.shape) {
    return invalid_argument("its header is not of one array of plain numbers");
  }
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const auto& known) { return known.descr == *fields.descr; });
  if (type == std::end(kTypes)) {
    return invalid_argument("got dtype '" + std::string(*fields.descr) + "', allowed " + known_descrs());
  }
  if (fields.shape->size() > kMaxRank) {
    return invalid_argument("got rank " + std::to_string(fields.shape->size()) + ", allowed at most " +
                            std::to_string(kMaxRank));
  }
  NpyView view{type->dtype, make_shape(*fields.shape), *fields.fortran_order, bytes.substr(begin + size)};
  const auto expected = size_of(*fields.shape, element_size(view.dtype));
  const std::string array = std::string(to_string(view.dtype)) + " " + to_string(view.shape);
  if (!expected) {
    return invalid_argument("no memory holds " + array);
  }
  if (*expected != view.data.size()) {
    return invalid_argument("got " + std::to_string(view.data.size()) + " bytes of data, allowed " +
                            std::to_string(*expected) + " for " + array);
  }
  return view;
}

Result<std::string> format_npy(ScalarType dtype, const Shape& shape, std::string_view data) {
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) { return known.dtype == dtype; });
  if (type == std::end(kTypes)) {
    return invalid_argument("NumPy lacks its type");
  }
  std::string header =
      "{'descr': '" + std::string(type->descr) + "', 'fortran_order': False, 'shape': " + to_string(shape) + ", }";
  constexpr std::size_t kPrefix = 10;  // magic, version, length
  header.append(kAlignment - 1 - (kPrefix + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return bytes.append(header).append(data);
}

void copy_elements(const Shape& shape, std::size_t element_size, const char* from,
                   const std::vector<std::int64_t>& from_strides, char* to,
                   const std::vector<std::int64_t>& to_strides) {
  std::size_t count = 1;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    count *= static_cast<std::size_t>(shape[d]);
  }
  std::vector<std::int64_t> index(shape.rank(), 0);
  const auto size = static_cast<std::int64_t>(element_size);
  std::int64_t from_offset = 0;
  std::int64_t to_offset = 0;
  for (std::size_t k = 0; k < count; ++k) {
    std::memcpy(to + to_offset * size, from + from_offset * size, element_size);
    for (std::size_t d = shape.rank(); d-- > 0;) {
      from_offset += from_strides[d];
      to_offset += to_strides[d];
      if (++index[d] < shape[d]) {
        break;
      }
      from_offset -= from_strides[d] * shape[d];
      to_offset -= to_strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

std::vector<std::int64_t> dense_strides(const Shape& shape, const std::vector<std::uint8_t>& dim_order) {
  std::vector<std::int64_t> strides(shape.rank(), 1);
  std::int64_t stride = 1;
  for (std::size_t k = shape.rank(); k-- > 0;) {
    strides[dim_order[k]] = stride;
    stride *= shape[dim_order[k]];
  }
  return strides;
}

}  // namespace executorch_tensorrt
