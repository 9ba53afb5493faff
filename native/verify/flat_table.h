// Reads FlatBuffers of which nothing is known: every step is checked, and one out of bounds throws Damage. ExecuTorch's
// own headers of its schema need FlatBuffers' library, which its wheel does not bring along.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace executorch_tensorrt {

// What is wrong with a program. Ends in the function that verifies it.
class Damage final : public std::exception {
 public:
  explicit Damage(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

inline void require(bool is_right, const char* what) {
  if (!is_right) {
    throw Damage(what);
  }
}

// ExecuTorch logs names of backends and operators as they are: they must not be able to forge a line.
inline void require_name(std::string_view name, const char* what) {
  for (const char c : name) {
    require(c > ' ' && c <= '~', what);
  }
}

inline void require_range(const char* what, std::int64_t got, std::int64_t least, std::int64_t most) {
  if (got < least || got > most) {
    throw Damage(std::string(what) + ": got " + std::to_string(got) + ", allowed " +
                 (most < least ? "none" : std::to_string(least) + " to " + std::to_string(most)));
  }
}

// Runs `check`; damage that it finds is said to be in "<what> <index><of>".
template <typename Check>
auto within(const char* what, std::size_t index, Check&& check, const char* of = "") {
  try {
    return check();
  } catch (const Damage& damage) {
    throw Damage(std::string(what) + " " + std::to_string(index) + of + ": " + damage.what());
  }
}

struct FlatBytes {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;

  FlatBytes part(std::uint64_t at, std::uint64_t length) const {
    require(at <= size && length <= size - at, "a part lies outside of its file");
    return {data + at, static_cast<std::size_t>(length)};
  }

  template <typename T>
  T read(std::size_t at) const {
    T value;
    std::memcpy(&value, part(at, sizeof(T)).data, sizeof(T));
    return value;
  }

  // Of what the offset at a place refers to.
  std::size_t follow(std::size_t at) const { return at + read<std::uint32_t>(at); }
};

// A vector of numbers. Empty where it is absent.
template <typename T>
class FlatNumbers {
 public:
  FlatNumbers() = default;
  FlatNumbers(const FlatBytes& bytes, std::size_t at) : size_(bytes.read<std::uint32_t>(at)), exists_(true) {
    items_ = bytes.part(at + sizeof(std::uint32_t), std::uint64_t{size_} * sizeof(T));
  }

  std::size_t size() const { return size_; }
  bool exists() const { return exists_; }
  T operator[](std::size_t index) const { return items_.read<T>(index * sizeof(T)); }
  const FlatBytes& bytes() const { return items_; }

 private:
  FlatBytes items_;
  std::size_t size_ = 0;
  bool exists_ = false;
};

class FlatTables;

// A table's fields by their ids, which count from 0 in the schema's order; a union takes two, its type and its value.
class FlatTable {
 public:
  FlatTable() = default;
  FlatTable(const FlatBytes& bytes, std::size_t at) : bytes_(bytes), at_(at) {
    const auto back = bytes.read<std::int32_t>(at);
    const std::int64_t fields = static_cast<std::int64_t>(at) - back;
    require(fields >= 0, "a table lies outside of its file");
    fields_ = static_cast<std::size_t>(fields);
    fields_size_ = bytes.read<std::uint16_t>(fields_);
    exists_ = true;
  }

  static FlatTable root(const FlatBytes& bytes) { return {bytes, bytes.follow(0)}; }

  bool exists() const { return exists_; }

  template <typename T>
  T number(unsigned field, T otherwise = 0) const {
    const std::size_t at = place(field);
    return at == 0 ? otherwise : bytes_.read<T>(at);
  }

  template <typename T>
  FlatNumbers<T> numbers(unsigned field) const {
    const std::size_t at = place(field);
    return at == 0 ? FlatNumbers<T>() : FlatNumbers<T>(bytes_, bytes_.follow(at));
  }

  FlatTable table(unsigned field) const {
    const std::size_t at = place(field);
    return at == 0 ? FlatTable() : FlatTable(bytes_, bytes_.follow(at));
  }

  FlatTables tables(unsigned field) const;

  // Empty where it is absent.
  std::string_view text(unsigned field) const {
    const std::size_t at = place(field);
    if (at == 0) {
      return {};
    }
    const std::size_t begin = bytes_.follow(at);
    const FlatBytes text = bytes_.part(begin + sizeof(std::uint32_t), bytes_.read<std::uint32_t>(begin));
    return {reinterpret_cast<const char*>(text.data), text.size};
  }

  bool has(unsigned field) const { return place(field) != 0; }

 private:
  // 0 for an absent one.
  std::size_t place(unsigned field) const {
    const std::size_t entry = (2 + std::size_t{field}) * sizeof(std::uint16_t);
    if (!exists_ || entry + sizeof(std::uint16_t) > fields_size_) {
      return 0;
    }
    const auto offset = bytes_.read<std::uint16_t>(fields_ + entry);
    return offset == 0 ? 0 : at_ + offset;
  }

  FlatBytes bytes_;
  std::size_t at_ = 0;
  std::size_t fields_ = 0;
  std::size_t fields_size_ = 0;
  bool exists_ = false;
};

// A vector of tables.
class FlatTables {
 public:
  FlatTables() = default;
  FlatTables(const FlatBytes& bytes, std::size_t at)
      : bytes_(bytes), at_(at + sizeof(std::uint32_t)), offsets_(bytes, at) {}

  std::size_t size() const { return offsets_.size(); }
  bool exists() const { return offsets_.exists(); }

  FlatTable operator[](std::size_t index) const {
    return {bytes_, at_ + index * sizeof(std::uint32_t) + offsets_[index]};
  }

 private:
  FlatBytes bytes_;
  std::size_t at_ = 0;
  FlatNumbers<std::uint32_t> offsets_;
};

inline FlatTables FlatTable::tables(unsigned field) const {
  const std::size_t at = place(field);
  return at == 0 ? FlatTables() : FlatTables(bytes_, bytes_.follow(at));
}

}  // namespace executorch_tensorrt
