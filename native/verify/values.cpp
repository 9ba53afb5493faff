#include "verify/values.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>

namespace executorch_tensorrt {
namespace {

enum MethodField { kValues = 2, kArenas = 8, kArenaDevices = 9 };
enum ValueField { kType = 0, kContent = 1 };
enum TensorField {
  kScalarType = 0,
  kStorageOffset = 1,
  kSizes = 2,
  kDimOrder = 3,
  kDataIndex = 5,
  kAllocation = 6,
  kLayout = 7,
  kDynamism = 8,
  kExtra = 9,
};
enum AllocationField { kArena = 0, kOffsetLow = 1, kOffsetHigh = 2 };
enum ExtraField { kName = 1, kLocation = 2, kDevice = 3, kDeviceIndex = 4 };
enum DeviceField { kDeviceArena = 0, kDeviceType = 1, kDeviceNumber = 2 };

constexpr std::size_t kMaxRank = 16;  // ExecuTorch's
constexpr std::int64_t kMost = INT64_MAX;

// By ExecuTorch's ScalarType.
constexpr std::array<std::uint8_t, 30> kItemSizes = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
                                                     2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1,  1, 2, 4, 8};

struct Device {
  int type = 0;
  int index = 0;
  bool operator==(const Device& other) const { return type == other.type && (type == 0 || index == other.index); }
};

class Reader {
 public:
  Reader(const FlatTable& method, const ProgramParts& parts)
      : parts_(parts), arenas_(method.numbers<std::int64_t>(kArenas)) {
    parts_.spend(arenas_.size());
    for (std::size_t k = 0; k < arenas_.size(); ++k) {
      require_range("size of an arena", arenas_[k], 0, kMost);
    }
    const FlatTables devices = method.tables(kArenaDevices);
    parts_.spend(devices.size());
    for (std::size_t k = 0; k < devices.size(); ++k) {
      devices_.emplace(
          devices[k].number<std::int32_t>(kDeviceArena),
          device(devices[k].number<std::int8_t>(kDeviceType), devices[k].number<std::int8_t>(kDeviceNumber)));
    }
  }

  Value read(const FlatTable& table, std::size_t values) {
    Value value;
    const auto type = table.number<std::uint8_t>(kType);
    require_range("kind", type, 1, static_cast<int>(Kind::kOptionalTensorList));
    value.kind = static_cast<Kind>(type);
    const FlatTable content = table.table(kContent);
    require(content.exists() || value.kind == Kind::kNone, "it has no content");
    switch (value.kind) {
      case Kind::kInt:
        value.number = content.number<std::int64_t>(0);
        break;
      case Kind::kTensor:
        read_tensor(content, value);
        break;
      case Kind::kString:
        require(content.has(0), "it has no content");
        break;
      case Kind::kDoubleList:
        require(content.numbers<double>(0).exists(), "it has no content");
        break;
      case Kind::kBoolList: {
        const auto items = content.numbers<std::uint8_t>(0);
        require(items.exists(), "it has no content");
        parts_.spend(items.size());
        for (std::size_t k = 0; k < items.size(); ++k) {
          require_range("item", items[k], 0, 1);
        }
        break;
      }
      case Kind::kIntList:
        read_items(content.numbers<std::int64_t>(0), 0, values, value);
        break;
      case Kind::kTensorList:
        read_items(content.numbers<std::int32_t>(0), 0, values, value);
        break;
      case Kind::kOptionalTensorList:
        read_items(content.numbers<std::int32_t>(0), -1, values, value);
        break;
      default:
        break;
    }
    return value;
  }

 private:
  static Device device(int type, int index) {
    require_range("device type", type, 0, 1);
    require_range("device index", index, 0, 127);
    return {type, index};
  }

  template <typename T>
  void read_items(const FlatNumbers<T>& items, std::int64_t least, std::size_t values, Value& value) const {
    require(items.exists(), "it has no content");
    parts_.spend(items.size());
    for (std::size_t k = 0; k < items.size(); ++k) {
      require_range("item", items[k], least, static_cast<std::int64_t>(values) - 1);
      value.items.push_back(items[k]);
    }
  }

  void read_tensor(const FlatTable& tensor, Value& value) {
    value.dtype = tensor.number<std::int8_t>(kScalarType);
    require_range("element type", value.dtype, 0, static_cast<std::int64_t>(kItemSizes.size()) - 1);
    value.item_size = kItemSizes[static_cast<std::size_t>(value.dtype)];
    require(tensor.number<std::int32_t>(kStorageOffset) == 0, "it begins within its storage");
    require_range("layout", tensor.number<std::int8_t>(kLayout), 0, 0);
    require_range("dynamism", tensor.number<std::int8_t>(kDynamism), 0, 2);
    read_shape(tensor, value);
    read_memory(tensor, value);
  }

  static void read_shape(const FlatTable& tensor, Value& value) {
    const auto sizes = tensor.numbers<std::int32_t>(kSizes);
    const auto order = tensor.numbers<std::uint8_t>(kDimOrder);
    require(sizes.exists() && order.exists(), "it has no shape");
    require_range("rank", static_cast<std::int64_t>(sizes.size()), 0, kMaxRank);
    require(order.size() == sizes.size(), "dim order: it is not of the tensor's rank");
    std::array<bool, kMaxRank> seen{};
    value.nbytes = value.item_size;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      require_range("size", sizes[d], 0, INT32_MAX);
      require(order[d] < sizes.size() && !seen[order[d]], "dim order: it is no permutation");
      seen[order[d]] = true;
      value.sizes.push_back(sizes[order[d]]);
      require(!__builtin_mul_overflow(value.nbytes, static_cast<std::uint64_t>(sizes[d]), &value.nbytes) &&
                  value.nbytes <= std::uint64_t{kMost},
              "it is larger than memory can be");
    }
  }

  void read_memory(const FlatTable& tensor, Value& value) {
    const FlatTable extra = tensor.table(kExtra);
    const auto location = extra.number<std::int8_t>(kLocation);
    require_range("location", location, 0, 1);
    require(location == 0 || !extra.text(kName).empty(), "its data is elsewhere, under no name");
    const Device where = device(extra.number<std::int8_t>(kDevice), extra.number<std::int8_t>(kDeviceIndex));
    value.is_on_device = where.type != 0;
    const auto data = tensor.number<std::uint32_t>(kDataIndex);
    const FlatTable allocation = tensor.table(kAllocation);
    if (allocation.exists()) {
      value.memory = Memory::kPlanned;
      read_plan(allocation, where, value);
      if (data > 0 && location == 0) {
        check_data(parts_.initial_value(data), value);
      }
    } else if (data > 0 || location != 0) {
      value.memory = Memory::kConstant;
      require(!value.is_on_device, "a constant is not in host memory");
      if (location == 0) {
        check_data(parts_.constant(data), value);
      }
    }
  }

  static void check_data(const FlatBytes& data, const Value& value) {
    require_range("bytes", static_cast<std::int64_t>(value.nbytes), 0, static_cast<std::int64_t>(data.size));
    require(value.nbytes == 0 ||
                reinterpret_cast<std::uintptr_t>(data.data) % std::min<std::size_t>(value.item_size, 8) == 0,
            "its data is not aligned");
  }

  void read_plan(const FlatTable& allocation, const Device& where, const Value& value) const {
    const auto arena = allocation.number<std::uint32_t>(kArena);
    require_range("arena", arena, 1, static_cast<std::int64_t>(arenas_.size()) - 1);
    const std::uint64_t offset = allocation.number<std::uint32_t>(kOffsetLow) |
                                 std::uint64_t{allocation.number<std::uint32_t>(kOffsetHigh)} << 32;
    const std::int64_t size = arenas_[arena];
    require(offset <= static_cast<std::uint64_t>(size), "its place is outside of its arena");
    require_range("bytes", static_cast<std::int64_t>(value.nbytes), 0, size - static_cast<std::int64_t>(offset));
    require(value.nbytes == 0 || offset % value.item_size == 0, "its place in an arena is not aligned");
    const auto other = devices_.find(static_cast<std::int32_t>(arena));
    require(where == (other != devices_.end() ? other->second : Device{}), "its arena is on another device");
  }

  const ProgramParts& parts_;
  FlatNumbers<std::int64_t> arenas_;
  std::map<std::int32_t, Device> devices_;  // of arenas that are not the host's; the first that is said of one counts
};

}  // namespace

std::string kind_name(Kind kind) {
  static constexpr const char* kNames[] = {"nothing",     "none",      "int",         "bool",
                                           "double",      "tensor",    "string",      "int list",
                                           "double list", "bool list", "tensor list", "optional tensor list"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Value> read_values(const FlatTable& method, const ProgramParts& parts) {
  const FlatTables tables = method.tables(kValues);
  require(tables.exists(), "it has no values");
  parts.spend(tables.size());
  Reader reader(method, parts);
  std::vector<Value> values;
  values.reserve(tables.size());
  for (std::size_t k = 0; k < tables.size(); ++k) {
    values.push_back(within("value", k, [&] { return reader.read(tables[k], tables.size()); }));
  }
  return values;
}

}  // namespace executorch_tensorrt
