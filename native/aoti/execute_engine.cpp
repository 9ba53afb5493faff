#include "aoti/execute_engine.h"

#include <executorch/runtime/core/evalue.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aoti/packaged_engine.h"
#include "aoti/torch_tracer.h"
#include "core/scalar_type.h"
#include "core/shape.h"
#include "executorch_tensorrt/cuda_stream_guard.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::EValue;
using executorch::runtime::etensor::DeviceType;
using torch_api::check;
using torch_api::functions;
using torch_api::ListPtr;
using torch_api::TensorPtr;
using torch_api::Value;

constexpr std::int32_t kCpu = 0;
constexpr std::int32_t kCuda = 1;
constexpr std::int32_t kStrided = 0;

struct Place {
  std::int32_t type = kCpu;
  std::int32_t index = -1;
};

// A tensor of PyTorch's as ExecuTorch has it: the same memory, row-major.
class Argument {
 public:
  Argument(const std::int64_t* sizes, std::size_t rank, ScalarType dtype, void* data, Place place) {
    for (std::size_t d = rank; d-- > 0;) {
      sizes_[d] = static_cast<executorch::aten::SizesType>(sizes[d]);
      order_[d] = static_cast<executorch::aten::DimOrderType>(d);
      const bool last = d + 1 == rank;
      strides_[d] = last ? 1 : strides_[d + 1] * (sizes_[d + 1] > 0 ? sizes_[d + 1] : 1);
    }
    tensor_.emplace(static_cast<executorch::aten::ScalarType>(dtype), static_cast<ssize_t>(rank), sizes_.data(), data,
                    order_.data(), strides_.data(), executorch::aten::TensorShapeDynamism::STATIC,
                    place.type == kCuda ? DeviceType::CUDA : DeviceType::CPU,
                    static_cast<executorch::runtime::etensor::DeviceIndex>(place.index < 0 ? 0 : place.index));
    value_ = EValue(executorch::aten::Tensor(&*tensor_));
  }
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;

  EValue* value() { return &value_; }

 private:
  std::array<executorch::aten::SizesType, kMaxRank> sizes_{};
  std::array<executorch::aten::StridesType, kMaxRank> strides_{};
  std::array<executorch::aten::DimOrderType, kMaxRank> order_{};
  std::optional<executorch::runtime::etensor::TensorImpl> tensor_;
  EValue value_;
};

std::string text_of(const std::int64_t* sizes, std::size_t rank) {
  Shape shape;
  shape.resize(rank);
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    shape[d] = sizes[d];
  }
  return to_string(shape);
}

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

// A label is text that a good call never needs, so it comes as a function.
template <typename Label>
void check_sizes(const Label& label, const std::int64_t* sizes, std::int64_t rank) {
  if (rank < 0 || rank > static_cast<std::int64_t>(kMaxRank)) {
    refuse(label() + ": got rank " + std::to_string(rank) + ", allowed 0 to " + std::to_string(kMaxRank));
  }
  for (std::int64_t d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || sizes[d] > std::numeric_limits<executorch::aten::SizesType>::max()) {
      refuse(label() + ": got " + text_of(sizes, static_cast<std::size_t>(rank)) +
             ", allowed sizes from 0 to 2147483647");
    }
  }
}

template <typename Label>
ScalarType checked_dtype(const Label& label, std::int64_t dtype) {
  const auto type = static_cast<ScalarType>(dtype);
  if (dtype != static_cast<std::int8_t>(dtype) || element_size(type) == 0) {
    refuse(label() + ": got PyTorch's dtype " + std::to_string(dtype) + ", which no engine takes");
  }
  return type;
}

Place place_of(torch_api::Tensor* tensor) {
  Place place;
  check(functions().aoti_torch_get_device_type(tensor, &place.type), "aoti_torch_get_device_type");
  check(functions().aoti_torch_get_device_index(tensor, &place.index), "aoti_torch_get_device_index");
  return place;
}

std::vector<Value> take_items(const ListPtr& list) {
  std::size_t count = 0;
  check(functions().torch_list_size(list.get(), &count), "torch_list_size");
  std::vector<Value> items(count);
  for (std::size_t i = 0; i < count; ++i) {
    check(functions().torch_list_get_item(list.get(), i, &items[i]), "torch_list_get_item");
  }
  return items;
}

// A list on the stack, and what is in it, are the kernel's to free.
std::vector<TensorPtr> take_tensors(Value stacked) {
  const ListPtr list(torch_api::handle<torch_api::List>(stacked));
  std::vector<TensorPtr> tensors;
  for (const Value item : take_items(list)) {
    tensors.emplace_back(torch_api::handle<torch_api::Tensor>(item));
  }
  return tensors;
}

std::vector<Value> take_numbers(Value stacked) {
  const ListPtr list(torch_api::handle<torch_api::List>(stacked));
  return take_items(list);
}

std::shared_ptr<PackagedEngine> engine_of(const TensorPtr& tensor) {
  std::int32_t dtype = 0;
  bool contiguous = false;
  check(functions().aoti_torch_get_dtype(tensor.get(), &dtype), "aoti_torch_get_dtype");
  check(functions().aoti_torch_is_contiguous(tensor.get(), &contiguous), "aoti_torch_is_contiguous");
  if (dtype != static_cast<std::int32_t>(ScalarType::kUInt8) || !contiguous || place_of(tensor.get()).type != kCpu) {
    refuse("engine: got another tensor than aoti.compile() makes, allowed its uint8 tensors on the CPU");
  }
  void* data = nullptr;
  std::int64_t size = 0;
  check(functions().aoti_torch_get_data_ptr(tensor.get(), &data), "aoti_torch_get_data_ptr");
  check(functions().aoti_torch_get_numel(tensor.get(), &size), "aoti_torch_get_numel");
  auto engine = packaged_engine(data, static_cast<std::size_t>(size));
  if (!engine.ok()) {
    throw_status("", engine.status());
  }
  return *engine;
}

// What an engine is called with, inputs then outputs.
class Arguments {
 public:
  explicit Arguments(PackagedEngine& engine) : engine_(engine) {
    const std::size_t count = engine.metadata.inputs.size() + engine.metadata.outputs.size();
    arguments_.reserve(count);
    values_.reserve(count);
  }

  // Where the first one lies.
  Place place() const { return place_; }

  void add(torch_api::Tensor* tensor) {
    const auto label = [this] { return next_name(); };
    std::int32_t layout = 0;
    bool contiguous = false;
    check(functions().aoti_torch_get_layout(tensor, &layout), "aoti_torch_get_layout");
    if (layout == kStrided) {
      check(functions().aoti_torch_is_contiguous(tensor, &contiguous), "aoti_torch_is_contiguous");
    }
    if (!contiguous) {
      refuse(label() + ": got a tensor that is not contiguous, allowed row-major ones; call contiguous() on it");
    }
    std::int64_t rank = 0;
    std::int64_t* sizes = nullptr;
    std::int32_t dtype = 0;
    check(functions().aoti_torch_get_dim(tensor, &rank), "aoti_torch_get_dim");
    check(functions().aoti_torch_get_sizes(tensor, &sizes), "aoti_torch_get_sizes");
    check(functions().aoti_torch_get_dtype(tensor, &dtype), "aoti_torch_get_dtype");
    const Place place = place_of(tensor);
    if (place.type != kCpu && place.type != kCuda) {
      refuse(label() + ": got a tensor on another device, allowed the CPU or a CUDA device");
    }
    check_sizes(label, sizes, rank);
    add(tensor, sizes, rank, checked_dtype(label, dtype), place);
  }

  // An output of this shape, where the first input lies. Another shape of the engine's own is an error of the call.
  TensorPtr add_output(const std::int64_t* sizes, std::int64_t rank, std::int64_t dtype) {
    const auto label = [this] { return next_name(); };
    check_sizes(label, sizes, rank);
    const ScalarType type = checked_dtype(label, dtype);
    std::array<std::int64_t, kMaxRank> strides{};
    std::int64_t stride = 1;
    for (std::int64_t d = rank; d-- > 0;) {
      strides[static_cast<std::size_t>(d)] = stride;
      stride *= sizes[d] > 0 ? sizes[d] : 1;
    }
    torch_api::Tensor* made = nullptr;
    check(functions().aoti_torch_empty_strided(rank, sizes, strides.data(), static_cast<std::int32_t>(type),
                                               place_.type, place_.index, &made),
          "aoti_torch_empty_strided");
    TensorPtr output(made);
    add(made, sizes, rank, type, place_);
    return output;
  }

  void run() {
    std::optional<CudaStreamGuard> stream;
    if (cuda_device_) {
      stream.emplace(torch_api::current_cuda_stream(*cuda_device_));
    }
    TorchTracer tracer;
    const Status status = engine_.handle->execute({values_.data(), values_.size()}, &tracer);
    if (!status.ok()) {
      throw_status(engine_.label, status);
    }
  }

 private:
  std::string next_name() const {
    const std::size_t k = values_.size();
    const auto& inputs = engine_.metadata.inputs;
    const auto& outputs = engine_.metadata.outputs;
    if (k < inputs.size()) {
      return engine_.label + ": input '" + inputs[k].name + "'";
    }
    const std::size_t o = k - inputs.size();
    return engine_.label + ": output " + (o < outputs.size() ? "'" + outputs[o].name + "'" : std::to_string(o));
  }

  void add(torch_api::Tensor* tensor, const std::int64_t* sizes, std::int64_t rank, ScalarType dtype, Place place) {
    void* data = nullptr;
    check(functions().aoti_torch_get_data_ptr(tensor, &data), "aoti_torch_get_data_ptr");
    if (values_.empty()) {
      place_ = place;
    }
    if (place.type == kCuda) {
      cuda_device_ = place.index;
    }
    arguments_.push_back(std::make_unique<Argument>(sizes, static_cast<std::size_t>(rank), dtype, data, place));
    values_.push_back(arguments_.back()->value());
  }

  PackagedEngine& engine_;
  std::vector<std::unique_ptr<Argument>> arguments_;
  std::vector<EValue*> values_;
  Place place_;
  std::optional<std::int32_t> cuda_device_;
};

void check_count(const PackagedEngine& engine, const char* what, std::size_t got, std::size_t allowed) {
  if (got != allowed) {
    refuse(engine.label + ": got " + std::to_string(got) + " " + what + ", allowed " + std::to_string(allowed));
  }
}

std::vector<TensorPtr> add_outputs(Arguments& arguments, const std::vector<Value>& described) {
  static_assert(sizeof(Value) == sizeof(std::int64_t));
  std::vector<std::int64_t> numbers(described.size());
  std::copy(described.begin(), described.end(), numbers.begin());
  std::vector<TensorPtr> outputs;
  std::size_t at = 0;
  while (numbers.size() - at >= 2) {
    const std::int64_t rank = numbers[at + 1];
    if (rank < 0 || static_cast<std::uint64_t>(rank) > numbers.size() - at - 2) {
      break;
    }
    outputs.push_back(arguments.add_output(numbers.data() + at + 2, rank, numbers[at]));
    at += 2 + static_cast<std::size_t>(rank);
  }
  if (at != numbers.size()) {
    refuse("outputs: got a list that ends amid an output, allowed dtype, rank and sizes of each");
  }
  return outputs;
}

ListPtr list_of(std::vector<TensorPtr> tensors) {
  torch_api::List* made = nullptr;
  check(functions().torch_new_list_reserve_size(tensors.size(), &made), "torch_new_list_reserve_size");
  ListPtr list(made);
  for (TensorPtr& tensor : tensors) {
    check(functions().torch_list_push_back(made, torch_api::value_of(tensor.get())), "torch_list_push_back");
    (void)tensor.release();
  }
  return list;
}

}  // namespace

void throw_status(const std::string& context, const Status& status) {
  const std::string text = context.empty() ? status.message() : context + ": " + status.message();
  if (status.code() == StatusCode::kInvalidArgument) {
    throw std::invalid_argument(text);
  }
  throw std::runtime_error(text);
}

void execute_engine(Value* stack, std::uint64_t, std::uint64_t) {
  const TensorPtr engine_tensor(torch_api::handle<torch_api::Tensor>(stack[1]));
  const std::vector<TensorPtr> inputs = take_tensors(stack[0]);
  const std::vector<Value> described = take_numbers(stack[2]);
  const std::shared_ptr<PackagedEngine> engine = engine_of(engine_tensor);
  check_count(*engine, "inputs that it writes", 0, engine->metadata.aliased_io.size());
  check_count(*engine, "inputs", inputs.size(), engine->metadata.inputs.size());
  Arguments arguments(*engine);
  for (const TensorPtr& input : inputs) {
    arguments.add(input.get());
  }
  std::vector<TensorPtr> outputs = add_outputs(arguments, described);
  arguments.run();
  stack[0] = torch_api::value_of(list_of(std::move(outputs)).release());
}

void execute_engine_in_place(Value* stack, std::uint64_t, std::uint64_t) {
  const TensorPtr engine_tensor(torch_api::handle<torch_api::Tensor>(stack[2]));
  const std::vector<TensorPtr> buffers = take_tensors(stack[0]);
  const std::vector<TensorPtr> inputs = take_tensors(stack[1]);
  const std::vector<TensorPtr> outputs = take_tensors(stack[3]);
  const std::shared_ptr<PackagedEngine> engine = engine_of(engine_tensor);
  const EngineMetadata& metadata = engine->metadata;
  const std::size_t num_written = metadata.aliased_io.size();
  check_count(*engine, "inputs that it writes", buffers.size(), num_written);
  check_count(*engine, "inputs", buffers.size() + inputs.size(), metadata.inputs.size());
  check_count(*engine, "outputs", buffers.size() + outputs.size(), metadata.outputs.size());
  // A buffer is an input, and the output that is written in its place.
  std::vector<torch_api::Tensor*> given(metadata.inputs.size(), nullptr);
  std::vector<torch_api::Tensor*> taken;
  std::size_t buffer = 0;
  std::size_t output = 0;
  for (const Binding& binding : metadata.outputs) {
    if (binding.aliased_input) {
      given[*binding.aliased_input] = buffers[buffer].get();
    }
    taken.push_back(binding.aliased_input ? buffers[buffer++].get() : outputs[output++].get());
  }
  std::size_t input = 0;
  Arguments arguments(*engine);
  for (torch_api::Tensor* tensor : given) {
    arguments.add(tensor != nullptr ? tensor : inputs[input++].get());
  }
  for (torch_api::Tensor* tensor : taken) {
    arguments.add(tensor);
  }
  arguments.run();
}

}  // namespace executorch_tensorrt
