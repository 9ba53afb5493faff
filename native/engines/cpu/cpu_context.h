// One profile of a CPU engine: a loaded method of the nested program.
#pragma once

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/cpu/layer_tracer.h"
#include "engines/cpu/planned_memory.h"
#include "engines/engine.h"

namespace executorch_tensorrt {

class CpuContext final : public ExecutionContext {
 public:
  // `metadata` has a record with shapes. All references outlive the context.
  static Result<std::unique_ptr<ExecutionContext>> create(const executorch::runtime::Program& program,
                                                          const std::string& method, PlannedMemory& memory,
                                                          const EngineMetadata& metadata, bool collect_layers);

  Status set_input_shape(std::size_t input, const Shape& shape) override;
  Status infer_output_shapes(std::vector<Shape>& outputs) override;
  Status set_input_address(std::size_t input, const void* data) override;
  Status set_output_address(std::size_t output, void* data, std::size_t nbytes) override;
  Status enqueue(void* stream, bool collect_layers) override;
  Status take_layers(LayerRecords& layers) override;

 private:
  // A tensor over memory of the caller's, handed to the nested method.
  struct BoundTensor {
    BoundTensor(ScalarType dtype, std::size_t rank);
    // A TensorImpl caches its number of elements, so a new shape takes a new one.
    void remake();

    ScalarType dtype;
    void* data = nullptr;
    std::vector<executorch::aten::SizesType> sizes;
    std::vector<executorch::aten::DimOrderType> dim_order;
    std::vector<executorch::aten::StridesType> strides;
    std::optional<executorch::aten::TensorImpl> impl;
    bool changed = true;
  };

  CpuContext(std::string method, PlannedMemory& memory, const EngineMetadata& metadata, bool collect_layers);
  Status load(const executorch::runtime::Program& program);
  Status check_aliases(std::size_t input) const;
  Status bind_changed_inputs();
  Status check_output_shapes() const;

  std::string name_;
  const EngineMetadata& metadata_;
  std::vector<std::string> input_names_;
  executorch::extension::MallocMemoryAllocator method_allocator_;
  executorch::extension::MallocMemoryAllocator temp_allocator_;
  executorch::runtime::HierarchicalAllocator planned_;
  executorch::runtime::MemoryManager memory_manager_;
  std::unique_ptr<LayerTracer> tracer_;
  LayerRecords layers_;                                // of the last call
  std::vector<std::unique_ptr<BoundTensor>> inputs_;   // a TensorImpl points into its own BoundTensor
  std::vector<std::unique_ptr<BoundTensor>> outputs_;  // outlive method_, which refers to them
  std::vector<Shape> input_shapes_;
  std::vector<Shape> output_shapes_;
  std::optional<executorch::runtime::Method> method_;
};

}  // namespace executorch_tensorrt
