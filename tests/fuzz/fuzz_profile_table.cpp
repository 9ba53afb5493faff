// Profile tables and selection: what is selected accepts the shapes, and automatic selection misses nothing.
#include "core/selection.h"
#include "fuzz.h"

using namespace executorch_tensorrt;

namespace {

// Numbers from the fuzzer's bytes; zeros at their end.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  std::size_t below(std::size_t bound) { return byte() % bound; }

  // Mostly small, at times any.
  std::int64_t dim() {
    const std::uint8_t first = byte();
    if (first < 0xf0) {
      return first % 8;
    }
    std::uint64_t value = 0;
    for (int k = 0; k < 8; ++k) {
      value = value << 8 | byte();
    }
    return static_cast<std::int64_t>(value);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

InputRanges ranges_of(Bytes& bytes, std::size_t rank) {
  InputRanges ranges;
  for (std::size_t d = 0; d < rank; ++d) {
    ranges.push_back({bytes.dim(), bytes.dim(), bytes.dim()});
  }
  return ranges;
}

std::vector<ProfileRanges> profiles_of(Bytes& bytes, std::size_t num_inputs) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < num_inputs; ++i) {
    ranks.push_back(bytes.below(kMaxRank + 2));
  }
  std::vector<ProfileRanges> profiles(bytes.below(4));
  for (ProfileRanges& inputs : profiles) {
    // One in sixteen contradicts the ranks, or the number of inputs.
    const bool odd = bytes.below(16) == 15;
    for (std::size_t i = 0; i < num_inputs + (odd ? bytes.below(2) : 0); ++i) {
      inputs.push_back(ranges_of(bytes, odd ? bytes.below(3) : ranks[i]));
    }
  }
  return profiles;
}

Request request_of(Bytes& bytes) {
  switch (bytes.below(3)) {
    case 0:
      return {};
    case 1:
      return Request::automatic();
    default:
      return Request::pinned(static_cast<std::int32_t>(bytes.dim()));
  }
}

void select(const ProfileTable& table, const std::vector<Shape>& shapes, Request request, Request load_default) {
  const auto selected = select_profile(table, shapes, request, load_default);
  if (selected.ok()) {
    require(*selected < table.num_profiles() && table.contains(*selected, shapes));
    return;
  }
  require(!selected.status().message().empty());
  const Request asked = request == Request{} ? load_default : request;
  if (asked == Request::automatic()) {
    for (std::size_t p = 0; p < table.num_profiles(); ++p) {
      require(!table.contains(p, shapes));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const std::vector<std::string> names{"a", "b"};
  const std::size_t num_inputs = bytes.below(3);
  const auto table = ProfileTable::create({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(num_inputs)},
                                          profiles_of(bytes, num_inputs));
  if (!table.ok()) {
    require(!table.status().message().empty());
    return 0;
  }
  require(check_reported(*table, *table).ok());
  for (int call = 0; call < 4; ++call) {
    std::vector<Shape> shapes(num_inputs);
    for (std::size_t i = 0; i < num_inputs; ++i) {
      shapes[i].resize(bytes.below(4) == 0 ? bytes.below(kMaxRank + 1) : table->ranges(0, i).size());
      for (std::size_t d = 0; d < shapes[i].rank(); ++d) {
        shapes[i][d] = bytes.dim();
      }
    }
    select(*table, shapes, request_of(bytes), request_of(bytes));
  }
  return 0;
}
