#include "engines/cpu/cpu_engine.h"

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/digest.h"
#include "core/memory.h"
#include "engines/cpu/cpu_context.h"
#include "engines/cpu/planned_memory.h"
#include "verify/program.h"

namespace executorch_tensorrt {
namespace {

using executorch::extension::BufferDataLoader;
using executorch::runtime::Error;
using executorch::runtime::MethodMeta;
using executorch::runtime::Program;

// What BufferDataLoader asks of its buffer.
constexpr std::size_t kProgramAlignment = 16;

using ProgramBytes = AlignedBytes<kProgramAlignment>;

// Half a millisecond. What the tables of an engine say is verified; nearly all other bytes are weights.
constexpr std::size_t kMaxCheckedSize = 256u << 10;

Status check_id(const EngineSource& source) {
  const std::string& id = source.metadata->record->engine_id;
  if (id.empty() || source.size > kMaxCheckedSize) {
    return {};
  }
  const std::string got = sha256(source.data, source.size).substr(0, id.size());
  if (got != id) {
    return invalid_program("the engine has other bytes than its id says: got " + got + ", wanted " + id +
                           "; it is damaged: export or copy it again");
  }
  return {};
}

Status error_status(const std::string& what, Error error) {
  return invalid_program(what + ": " + executorch::runtime::to_string(error));
}

Status check_binding(const std::string& method, const char* side, std::size_t index, ScalarType expected,
                     const executorch::runtime::Result<executorch::runtime::TensorInfo>& info) {
  if (!info.ok()) {
    return error_status(method + " " + side + " " + std::to_string(index) + " is no tensor", info.error());
  }
  const auto got = static_cast<ScalarType>(info->scalar_type());
  if (got != expected) {
    return invalid_program(method + " " + side + " " + std::to_string(index) + " is " + std::string(to_string(got)) +
                           ", the metadata says " + std::string(to_string(expected)));
  }
  if (!executorch::runtime::is_contiguous_dim_order(info->dim_order().data(), info->dim_order().size())) {
    return invalid_program(method + " " + side + " " + std::to_string(index) + " is not row-major");
  }
  if (info->is_memory_planned()) {
    return invalid_program(method + " " + side + " " + std::to_string(index) + " is memory-planned");
  }
  return {};
}

class CpuEngine final : public Engine {
 public:
  // `copy` holds the program when the source was not aligned.
  CpuEngine(const void* data, std::size_t size, ProgramBytes copy, const EngineMetadata& metadata)
      : copy_(std::move(copy)), loader_(data, size), metadata_(metadata) {}

  // `data`, `size`: the program, as it was made with.
  Status load(const void* data, std::size_t size) {
    auto program = Program::load(&loader_, Program::Verification::InternalConsistency);
    if (!program.ok()) {
      return error_status("the engine is no ExecuTorch program", program.error());
    }
    if (Status status = verify_program(data, size); !status.ok()) {
      return invalid_program("the engine is damaged: " + status.message());
    }
    program_ = std::make_unique<Program>(std::move(*program));
    for (std::size_t p = 0; p < profiles().num_profiles(); ++p) {
      const std::string name = method_name(p);
      const auto meta = program_->method_meta(name.c_str());
      if (!meta.ok()) {
        return error_status("the engine has no method '" + name + "'", meta.error());
      }
      if (Status status = check_method(name, *meta); !status.ok()) {
        return status;
      }
      if (Status status = memory_.reserve(*meta); !status.ok()) {
        return status;
      }
    }
    return {};
  }

  std::string_view kind() const override { return "cpu"; }
  const ProfileTable& profiles() const override { return *metadata_.record->profiles; }

  Result<std::unique_ptr<ExecutionContext>> create_context(std::size_t profile, bool collect_layers,
                                                           const ActivationMemory&) override {
    return CpuContext::create(*program_, method_name(profile), memory_, metadata_, collect_layers);
  }

 private:
  static std::string method_name(std::size_t profile) { return "profile_" + std::to_string(profile); }

  Status check_method(const std::string& name, const MethodMeta& meta) const {
    if (meta.num_inputs() != metadata_.inputs.size() || meta.num_outputs() != metadata_.outputs.size()) {
      return invalid_program("method '" + name + "' has " + std::to_string(meta.num_inputs()) + " inputs and " +
                             std::to_string(meta.num_outputs()) + " outputs, the metadata says " +
                             std::to_string(metadata_.inputs.size()) + " and " +
                             std::to_string(metadata_.outputs.size()));
    }
    const std::string method = "method '" + name + "'";
    for (std::size_t i = 0; i < metadata_.inputs.size(); ++i) {
      Status status = check_binding(method, "input", i, metadata_.inputs[i].dtype, meta.input_tensor_meta(i));
      if (!status.ok()) {
        return status;
      }
    }
    for (std::size_t o = 0; o < metadata_.outputs.size(); ++o) {
      Status status = check_binding(method, "output", o, metadata_.outputs[o].dtype, meta.output_tensor_meta(o));
      if (!status.ok()) {
        return status;
      }
    }
    return {};
  }

  ProgramBytes copy_;
  BufferDataLoader loader_;
  EngineMetadata metadata_;
  std::unique_ptr<Program> program_;
  PlannedMemory memory_;
};

}  // namespace

Result<std::unique_ptr<Engine>> load_cpu_engine(const EngineSource& source) {
  const EngineMetadata& metadata = *source.metadata;
  if (!metadata.record || !metadata.record->shapes) {
    return invalid_program("the metadata of a cpu engine lacks its profiles and shapes");
  }
  for (const Binding& output : metadata.outputs) {
    if (!output.argument && !output.aliased_input) {
      return invalid_program("output '" + output.name + "' of a cpu engine is no argument");
    }
  }
  if (Status status = check_id(source); !status.ok()) {
    return status;
  }
  executorch::runtime::runtime_init();
  const void* data = source.data;
  ProgramBytes copy;
  if (reinterpret_cast<std::uintptr_t>(data) % kProgramAlignment != 0) {
    copy = aligned_bytes<kProgramAlignment>(source.size);
    if (!copy) {
      return Status(StatusCode::kOutOfMemory, "no memory for an engine of " + std::to_string(source.size) + " bytes");
    }
    std::memcpy(copy.get(), data, source.size);
    data = copy.get();
  }
  auto engine = std::make_unique<CpuEngine>(data, source.size, std::move(copy), metadata);
  if (Status status = engine->load(data, source.size); !status.ok()) {
    return status;
  }
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace executorch_tensorrt
