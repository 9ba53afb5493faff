// The blob's JSON: every index in what is accepted is in range, and shapes are inferred from every corner of every
// profile without harm.
#include "core/metadata.h"
#include "fuzz.h"

using namespace executorch_tensorrt;

namespace {

void check_arguments(const EngineMetadata& metadata) {
  for (const auto* bindings : {&metadata.inputs, &metadata.outputs}) {
    for (const Binding& binding : *bindings) {
      require(!binding.name.empty());
      require(!binding.argument || *binding.argument < metadata.num_arguments);
      require(!binding.aliased_input || *binding.aliased_input < metadata.inputs.size());
    }
  }
}

void check_state(const EngineMetadata& metadata) {
  for (std::size_t i = 0; i < metadata.inputs.size(); ++i) {
    std::size_t owners = 0;
    if (metadata.record) {
      for (const OwnedBuffer& owned : metadata.record->state) {
        owners += owned.input == i;
      }
    }
    require(owners == (metadata.inputs[i].argument ? 0u : 1u));
  }
}

void infer(const EngineMetadata& metadata, const ProfileTable& profiles, const ShapeProgram& program) {
  require(program.num_inputs() == metadata.inputs.size() && program.num_outputs() == metadata.outputs.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < profiles.num_inputs(); ++i) {
    names.push_back(profiles.input_name(i));
  }
  for (std::size_t p = 0; p < profiles.num_profiles(); ++p) {
    for (std::int64_t DimRange::* corner : {&DimRange::min, &DimRange::opt, &DimRange::max}) {
      std::vector<Shape> shapes(profiles.num_inputs());
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        shapes[i].resize(profiles.ranges(p, i).size());
        for (std::size_t d = 0; d < shapes[i].rank(); ++d) {
          shapes[i][d] = profiles.ranges(p, i)[d].*corner;
        }
      }
      std::vector<Shape> outputs;
      const Status status = program.infer(shapes, names, outputs);
      require(status.ok() ? outputs.size() == metadata.outputs.size() : !status.message().empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto metadata = parse_metadata(text_of(data, size));
  if (!metadata.ok()) {
    require(!metadata.status().message().empty());
    return 0;
  }
  check_arguments(*metadata);
  check_state(*metadata);
  if (metadata->record && metadata->record->shapes) {
    infer(*metadata, *metadata->record->profiles, *metadata->record->shapes);
  }
  return 0;
}
