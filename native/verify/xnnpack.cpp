#include "verify/xnnpack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "verify/values.h"
#include "verify/xnnpack_nodes.h"

namespace executorch_tensorrt {
namespace {

enum GraphField { kNodes = 1, kValues = 2, kNumExterns = 3, kBuffers = 6, kConstants = 8 };
enum UnionField { kType = 0, kContent = 1 };
enum TensorField { kDatatype = 0, kNumDims = 1, kDims = 2, kConstant = 3, kExternalId = 4, kFlags = 5, kId = 6 };
enum QuantizedField { kTensor = 0, kQuantType = 1, kQuant = 2 };
enum QuantType { kPerChannel = 1, kPerTensor = 2, kPerToken = 3, kPerGroup = 4 };
enum ConstantField { kOffset = 0, kSize = 1, kName = 2 };

constexpr char kOfGraph[] = " of XNNPACK's graph";
constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kInputFlag = 1;
constexpr std::uint32_t kOutputFlag = 2;
constexpr std::size_t kMaxRank = 6;  // XNNPACK's
constexpr std::uint32_t kMaxExterns = 4096;

// By XNNDatatype.
constexpr std::array<std::uint8_t, 15> kBits = {0, 32, 16, 8, 8, 32, 8, 32, 4, 8, 4, 8, 32, 32, 16};

struct GraphValue {
  std::uint8_t bits = 0;
  std::vector<std::uint32_t> dims;
  std::uint32_t external_id = kNone;
  std::uint32_t flags = 0;
  bool is_constant = false;
  bool is_ready = false;  // it is an input or a constant, or a node before has written it
};

std::uint64_t product(const std::vector<std::uint32_t>& dims) {
  std::uint64_t all = 1;
  for (const std::uint32_t dim : dims) {
    require(!__builtin_mul_overflow(all, std::uint64_t{dim}, &all) && all <= static_cast<std::uint64_t>(INT64_MAX) / 64,
            "it is larger than memory can be");
  }
  return all;
}

class Graph final : public CheckedDelegate {
 public:
  Graph(const FlatBytes& data, const ProgramParts& parts) : parts_(parts), graph_(data), constants_() {
    constexpr std::size_t kHeaderSize = 30;
    if (data.size >= kHeaderSize && std::memcmp(data.data + 4, "XH00", 4) == 0) {
      graph_ = data.part(data.read<std::uint32_t>(10), data.read<std::uint32_t>(14));
      constants_ = data.part(data.read<std::uint32_t>(18), data.read<std::uint64_t>(22));
      has_constants_ = true;
    }
    parts_.spend(graph_.size);
    root_ = FlatTable::root(graph_);
    require_range("externals", root_.number<std::uint32_t>(kNumExterns), 0, kMaxExterns);
    read_values(root_.tables(kValues));
    run(root_.tables(kNodes));
  }

  void check_call(const std::vector<const Value*>& arguments) const override {
    for (const auto& [place, value] : externals_) {
      require_range("arguments", static_cast<std::int64_t>(arguments.size()), std::int64_t{place} + 1, INT32_MAX);
      within("argument", place, [&, k = place, of = value] { check_argument(*arguments[k], *of); });
    }
  }

  bool writes(std::size_t argument) const override {
    const auto found = externals_.find(static_cast<std::uint32_t>(argument));
    return found != externals_.end() && (found->second->flags & kOutputFlag) != 0;
  }

 private:
  static void check_argument(const Value& argument, const GraphValue& value) {
    if (argument.kind != Kind::kTensor) {
      throw Damage("got " + kind_name(argument.kind) + ", allowed tensor");
    }
    require(!argument.is_on_device, "it is not in host memory");
    require_range("bytes an element", value.bits / 8, 1, static_cast<std::int64_t>(argument.item_size));
    const bool is_scalar = argument.sizes.empty() && value.dims == std::vector<std::uint32_t>{1};
    require(is_scalar || argument.sizes.size() == value.dims.size(), "it is not of the graph's rank");
  }

  void read_values(const FlatTables& tables) {
    require(tables.exists(), "it has no values");
    for (std::size_t k = 0; k < tables.size(); ++k) {
      within("value", k, [&] { read_value(tables[k]); }, kOfGraph);
    }
  }

  void read_value(const FlatTable& table) {
    const auto type = table.number<std::uint8_t>(kType);
    require_range("kind", type, 1, 2);
    const FlatTable content = table.table(kContent);
    require(content.exists(), "it has no content");
    const FlatTable tensor = type == 2 ? content.table(kTensor) : content;
    require(tensor.exists(), "it has no content");
    GraphValue value;
    const auto datatype = tensor.number<std::int16_t>(kDatatype);
    require_range("element type", datatype, 1, static_cast<std::int64_t>(kBits.size()) - 1);
    value.bits = kBits[static_cast<std::size_t>(datatype)];
    const auto dims = tensor.numbers<std::uint32_t>(kDims);
    require_range("rank", static_cast<std::int64_t>(dims.size()), 0, kMaxRank);
    require(tensor.number<std::uint32_t>(kNumDims) == dims.size(), "it has not as many sizes as its rank");
    for (std::size_t d = 0; d < dims.size(); ++d) {
      value.dims.push_back(dims[d]);
    }
    (void)product(value.dims);
    value.flags = tensor.number<std::uint32_t>(kFlags);
    require_range("flags", value.flags, 0, kOutputFlag);
    value.external_id = tensor.number<std::uint32_t>(kExternalId);
    require((value.external_id == kNone) == (value.flags == 0), "it has no place among the arguments");
    require(value.external_id == kNone || value.external_id < root_.number<std::uint32_t>(kNumExterns),
            "its place is outside of the arguments");
    const auto constant = tensor.number<std::uint32_t>(kConstant);
    value.is_constant = constant != 0;
    value.is_ready = value.is_constant || value.flags == kInputFlag;
    require(!value.is_constant || value.flags == 0, "a constant is an input or an output");
    if (value.is_constant) {
      check_size(constant, bytes_of(value));
    }
    if (type == 2) {
      check_quantization(content, value);
    }
    require(externals_.count(value.external_id) == 0, "two have one place");
    const auto id = tensor.number<std::uint32_t>(kId);
    const auto [entry, is_first] = values_.emplace(id, std::move(value));
    require(id != kNone && is_first, "two have one id");
    if (entry->second.external_id != kNone) {
      externals_.emplace(entry->second.external_id, &entry->second);
    }
  }

  static std::uint64_t bytes_of(const GraphValue& value) {
    const std::uint64_t bits = value.bits;
    if (value.dims.empty()) {
      return (bits + 7) / 8;
    }
    const std::vector<std::uint32_t> rows(value.dims.begin(), value.dims.end() - 1);
    return product(rows) * ((value.dims.back() * bits + 7) / 8);
  }

  void check_size(std::uint32_t constant, std::uint64_t wanted) const {
    require_range("bytes", static_cast<std::int64_t>(wanted), 0, static_cast<std::int64_t>(data_of(constant).size));
  }

  FlatBytes data_of(std::uint32_t constant) const {
    if (!has_constants_) {
      const FlatTables buffers = root_.tables(kBuffers);
      require(constant < buffers.size(), "a constant is named that there is not");
      return buffers[constant].numbers<std::uint8_t>(0).bytes();
    }
    const FlatTables constants = root_.tables(kConstants);
    require(constant < constants.size(), "a constant is named that there is not");
    const FlatTable entry = constants[constant];
    return entry.has(kName) ? parts_.named(entry.text(kName))
                            : constants_.part(entry.number<std::uint64_t>(kOffset), entry.number<std::uint64_t>(kSize));
  }

  void check_quantization(const FlatTable& content, const GraphValue& value) const {
    const auto type = content.number<std::uint8_t>(kQuantType);
    require_range("quantization", type, kPerChannel, kPerGroup);
    const FlatTable quantization = content.table(kQuant);
    require(quantization.exists(), "it has no quantization");
    if (type == kPerToken) {
      require_range("dims that are no batch", quantization.number<std::int32_t>(0), 0,
                    static_cast<std::int64_t>(value.dims.size()));
    } else if (type == kPerChannel || type == kPerGroup) {
      const auto channel = quantization.number<std::int32_t>(1);
      require_range("channel dim", channel, 0, static_cast<std::int64_t>(value.dims.size()) - 1);
      std::uint64_t scales = value.dims[static_cast<std::size_t>(channel)];
      if (type == kPerGroup) {
        const auto group = quantization.number<std::int32_t>(2);
        require_range("group size", group, 1, INT32_MAX);
        require_range("rank", static_cast<std::int64_t>(value.dims.size()), 2, 2);
        scales = product(value.dims) / static_cast<std::uint64_t>(group);
      }
      const bool is_grouped = type == kPerGroup;
      const auto buffer = quantization.number<std::uint32_t>(is_grouped ? 4 : 2);
      const FlatNumbers<float> inline_scales = quantization.numbers<float>(0);
      require(inline_scales.exists(), "it has no scales");
      if (buffer != 0) {
        check_size(buffer, scales * (is_grouped ? 2 : 4));
      } else {
        require_range("scales", static_cast<std::int64_t>(inline_scales.size()), static_cast<std::int64_t>(scales),
                      INT32_MAX);
      }
    }
  }

  void run(const FlatTables& nodes) {
    require(nodes.exists(), "it has no nodes");
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      within("node", k, [&] { run_node(nodes[k]); }, kOfGraph);
    }
    for (const auto& [id, value] : values_) {
      require(value.flags != kOutputFlag || value.is_ready, "an output of XNNPACK's graph is never written");
    }
  }

  void run_node(const FlatTable& node) {
    const auto type = node.number<std::uint8_t>(kType);
    const XnnpackNodeFields* fields = xnnpack_node_fields(type);
    require(fields != nullptr, "it is of no kind that runs");
    const FlatTable content = node.table(kContent);
    require(content.exists(), "it has no content");
    for (const std::uint8_t field : fields->inputs) {
      (void)input(content.number<std::uint32_t>(field));
    }
    if (fields->bias >= 0 && content.number<std::uint32_t>(static_cast<unsigned>(fields->bias)) != kNone) {
      (void)input(content.number<std::uint32_t>(static_cast<unsigned>(fields->bias)));
    }
    check_weights(static_cast<XnnpackNode>(type), content, *fields);
    for (const std::uint8_t field : fields->outputs) {
      const auto found = values_.find(content.number<std::uint32_t>(field));
      require(found != values_.end(), "it writes a value that there is not");
      require(!found->second.is_ready, "it writes what is there already");
      found->second.is_ready = true;
    }
  }

  const GraphValue& input(std::uint32_t id) const {
    const auto found = values_.find(id);
    require(found != values_.end(), "it reads a value that there is not");
    require(found->second.is_ready, "it reads what nothing has written");
    return found->second;
  }

  // XNNPACK takes weights to be as large as the node says.
  void check_weights(XnnpackNode type, const FlatTable& content, const XnnpackNodeFields& fields) const {
    std::uint64_t channels = 0;
    if (type == XnnpackNode::kFullyConnected) {
      constexpr std::uint32_t kTransposed = 1;
      const std::vector<std::uint32_t>& filter = input(content.number<std::uint32_t>(1)).dims;
      require_range("rank of its weights", static_cast<std::int64_t>(filter.size()), 2, 2);
      channels = filter[(content.number<std::uint32_t>(4) & kTransposed) != 0 ? 1 : 0];
    } else if (fields.bias > 3) {  // convolutions
      const auto number = [&](unsigned field) { return content.number<std::uint32_t>(field); };
      const bool is_depthwise = type == XnnpackNode::kDepthwiseConv2d;
      const std::uint64_t groups = number(12);
      const std::uint64_t group_inputs = number(10);
      const std::uint64_t group_outputs = number(11);
      channels = groups * group_outputs;
      const std::vector<std::uint64_t> wanted =
          is_depthwise ? std::vector<std::uint64_t>{1, number(4), number(5), channels}
                       : std::vector<std::uint64_t>{channels, number(4), number(5), group_inputs};
      const std::vector<std::uint32_t>& filter = input(number(16)).dims;
      require(std::equal(wanted.begin(), wanted.end(), filter.begin(), filter.end()),
              "its weights are not of the shape that it says");
    }
    if (fields.bias >= 0 && content.number<std::uint32_t>(static_cast<unsigned>(fields.bias)) != kNone) {
      const GraphValue& bias = input(content.number<std::uint32_t>(static_cast<unsigned>(fields.bias)));
      require(product(bias.dims) == channels, "its bias is not of as many channels as its weights");
    }
  }

  const ProgramParts& parts_;
  FlatBytes graph_;
  FlatBytes constants_;
  bool has_constants_ = false;
  FlatTable root_;
  std::map<std::uint32_t, GraphValue> values_;            // by their ids
  std::map<std::uint32_t, const GraphValue*> externals_;  // by their place among the arguments
};

}  // namespace

std::unique_ptr<CheckedDelegate> read_xnnpack(const FlatBytes& data, const ProgramParts& parts) {
  return std::make_unique<Graph>(data, parts);
}

}  // namespace executorch_tensorrt
