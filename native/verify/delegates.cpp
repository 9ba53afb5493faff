#include "verify/delegates.h"

#include <cstdint>
#include <optional>

#include "core/blob.h"
#include "core/metadata.h"
#include "core/text.h"
#include "verify/xnnpack.h"

namespace executorch_tensorrt {
namespace {

enum MethodField { kDelegates = 7 };
enum ProgramField { kInlineData = 3 };
enum DelegateField { kId = 0, kProcessed = 1, kCompileSpecs = 2 };
enum ReferenceField { kLocation = 0, kIndex = 1 };
enum CompileSpecField { kKey = 0, kValue = 1 };

// It checks its own calls.
class OtherDelegate final : public CheckedDelegate {
 public:
  void check_call(const std::vector<const Value*>&) const override {}
  bool writes(std::size_t) const override { return false; }
};

// It checks its calls when they are made, but for what ExecuTorch does not tell then: which tensors are constants. A
// blob that can't be read is refused when its method loads.
class EngineDelegate final : public CheckedDelegate {
 public:
  EngineDelegate(const FlatBytes& blob, const ProgramParts& parts) : blob_(blob), parts_(parts) {}

  void check_call(const std::vector<const Value*>&) const override {}

  bool writes(std::size_t argument) const override {
    if (!num_inputs_) {
      const Result<BlobView> view = parse_blob(blob_.data, blob_.size);
      parts_.spend(view.ok() ? view->metadata.size() : 0);
      const Result<EngineMetadata> metadata = view.ok() ? parse_metadata(view->metadata) : view.status();
      num_inputs_ = metadata.ok() ? metadata->inputs.size() : SIZE_MAX;
    }
    return argument >= *num_inputs_;
  }

 private:
  FlatBytes blob_;
  const ProgramParts& parts_;
  mutable std::optional<std::size_t> num_inputs_;  // once it was asked for
};

FlatBytes data_of(const FlatTable& delegate, const ProgramParts& parts) {
  const FlatTable reference = delegate.table(kProcessed);
  require(reference.exists(), "it has no data");
  const auto location = reference.number<std::int8_t>(kLocation);
  require_range("location", location, 0, 1);
  const auto index = reference.number<std::uint32_t>(kIndex);
  if (location == 1) {
    return parts.segment(index);
  }
  const FlatTables data = parts.program().tables(kInlineData);
  require_range("data", index, 0, static_cast<std::int64_t>(data.size()) - 1);
  require(data[index].has(0), "it has no data");
  return data[index].numbers<std::uint8_t>(0).bytes();
}

std::unique_ptr<CheckedDelegate> read_delegate(const FlatTable& delegate, const ProgramParts& parts) {
  const std::string_view id = delegate.text(kId);
  require(!id.empty(), "it has no backend");
  require_name(id, "its backend has a name that none has");
  const FlatTables specs = delegate.tables(kCompileSpecs);
  parts.spend(specs.size());
  for (std::size_t k = 0; k < specs.size(); ++k) {
    require(specs[k].has(kKey) && specs[k].has(kValue), "a compile spec has no key or no value");
  }
  const FlatBytes data = data_of(delegate, parts);
  if (id == "XnnpackBackend") {
    return read_xnnpack(data, parts);
  }
  if (id == "TensorRTBackend") {
    return std::make_unique<EngineDelegate>(data, parts);
  }
  return std::make_unique<OtherDelegate>();
}

}  // namespace

std::vector<std::unique_ptr<CheckedDelegate>> read_delegates(const FlatTable& method, const ProgramParts& parts) {
  const FlatTables tables = method.tables(kDelegates);
  require(tables.exists(), "it has no list of delegates");
  parts.spend(tables.size());
  std::vector<std::unique_ptr<CheckedDelegate>> delegates;
  for (std::size_t k = 0; k < tables.size(); ++k) {
    delegates.push_back(within("delegate", k, [&] { return read_delegate(tables[k], parts); }));
  }
  return delegates;
}

}  // namespace executorch_tensorrt
