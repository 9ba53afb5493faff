#include "executorch_tensorrt/engine_state.h"

#include <utility>

#include "core/guard_stack.h"
#include "delegate/engine_buffers.h"
#include "device/state_memory.h"
#include "process/yielding_lock.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

// One per process, because it lives in this shared library and nowhere else.
thread_local const std::shared_ptr<EngineBuffers>* asked = nullptr;

std::string quoted_names(const EngineBuffers& buffers) {
  std::string names;
  for (const auto& [name, buffer] : buffers.buffers) {
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  return names.empty() ? "none, for no method with engine-owned buffers is loaded" : names;
}

// The buffer, when `nbytes` are what it has.
Result<EngineBuffer*> find(EngineBuffers& buffers, const std::string& name, std::size_t nbytes) {
  const auto found = buffers.buffers.find(name);
  if (found == buffers.buffers.end()) {
    return invalid_argument("unknown buffer: got '" + name + "', allowed " + quoted_names(buffers));
  }
  if (found->second.nbytes != nbytes) {
    return invalid_argument("buffer '" + name + "': got " + std::to_string(nbytes) + " bytes, allowed " +
                            std::to_string(found->second.nbytes));
  }
  return &found->second;
}

// Applies `use` to the buffer; a failure is reported after the mutex is free again.
template <typename Use>
Error with_buffer(EngineBuffers& buffers, const std::string& name, std::size_t nbytes, Use&& use) {
  Status status;
  {
    const std::unique_lock<std::mutex> lock = locked(buffers.mutex);
    const Result<EngineBuffer*> buffer = find(buffers, name, nbytes);
    status = buffer.ok() ? use(*(*buffer)->memory) : buffer.status();
  }
  return status.ok() ? Error::Ok : buffers.failures.report(status);
}

std::string place(const std::optional<int>& device) {
  return device ? "on CUDA device " + std::to_string(*device) : "on the host";
}

}  // namespace

std::shared_ptr<EngineBuffers> current_engine_buffers() { return asked != nullptr ? *asked : nullptr; }

Status EngineBuffers::check(const EngineBuffer& buffer, const WantedBuffer& wanted) {
  if (buffer.device != wanted.device) {
    return invalid_program("buffer '" + wanted.name + "' is " + place(wanted.device) + " here and " +
                           place(buffer.device) +
                           " in a method loaded before; methods that share a state have their engines in one place");
  }
  if (buffer.dtype == wanted.dtype && buffer.shape == wanted.shape && buffer.initial == wanted.initial) {
    return {};
  }
  return invalid_program("buffer '" + wanted.name + "' is " + std::string(to_string(wanted.dtype)) + " " +
                         to_string(wanted.shape) + " here and " + std::string(to_string(buffer.dtype)) + " " +
                         to_string(buffer.shape) +
                         " in a method loaded before, or begins with another value; methods that share a state have "
                         "the same buffers");
}

Result<std::unique_ptr<BufferMemory>> EngineBuffers::make_memory(const EngineBuffer& buffer, const std::string& name) {
  if (!buffer.device) {
    return HostMemory::create(buffer.nbytes, name);
  }
  const Result<const Cuda*> cuda = Cuda::get();
  if (!cuda.ok()) {
    return cuda.status();
  }
  std::shared_ptr<StreamOrder>& order = orders_[*buffer.device];
  if (!order) {
    order = std::make_shared<StreamOrder>(StreamOrder{**cuda, *buffer.device, {}});
  }
  return DeviceStateMemory::create(order, buffer.nbytes, name);
}

Result<EngineBuffer> EngineBuffers::make(const WantedBuffer& wanted) {
  EngineBuffer buffer{wanted.dtype, wanted.shape, 0, wanted.initial, wanted.device, nullptr};
  if (wanted.dtype == ScalarType::kUnknown) {
    return invalid_program("buffer '" + wanted.name + "' has no dtype, neither in the program nor by its engine");
  }
  if (!size_in_bytes(buffer.shape, element_size(buffer.dtype), buffer.nbytes)) {
    return invalid_program("buffer '" + wanted.name + "' has a size that no memory has: " + to_string(buffer.shape));
  }
  if (!wanted.initial.empty() && wanted.initial.size() != buffer.nbytes) {
    return invalid_program("buffer '" + wanted.name + "' has an initial value of " +
                           std::to_string(wanted.initial.size()) + " bytes, wanted " + std::to_string(buffer.nbytes));
  }
  Result<std::unique_ptr<BufferMemory>> memory = make_memory(buffer, wanted.name);
  if (!memory.ok()) {
    return memory.status();
  }
  buffer.memory = std::move(*memory);
  if (Status status = buffer.reset(); !status.ok()) {
    return status;
  }
  return buffer;
}

Result<SharedBuffers> EngineBuffers::share(const std::vector<WantedBuffer>& wanted) {
  const std::unique_lock<std::mutex> lock = locked(mutex);
  std::map<std::string, EngineBuffer> made;
  SharedBuffers shared;
  for (const WantedBuffer& want : wanted) {
    const auto found = buffers.find(want.name);
    if (found != buffers.end()) {
      if (Status status = check(found->second, want); !status.ok()) {
        return status;
      }
      shared.buffers.push_back(&found->second);
    } else {
      Result<EngineBuffer> buffer = make(want);
      if (!buffer.ok()) {
        return buffer.status();
      }
      shared.buffers.push_back(&made.emplace(want.name, std::move(*buffer)).first->second);
    }
    if (Status status = want.updated_in_place ? Status() : shared.buffers.back()->memory->make_next(want.name);
        !status.ok()) {
      return status;
    }
  }
  if (!wanted.empty() && wanted.front().device) {
    shared.order = orders_.at(*wanted.front().device);
  }
  buffers.merge(made);  // moves the nodes, not the buffers
  return shared;
}

EngineState::EngineState() : buffers_(std::make_shared<EngineBuffers>()) {}

std::vector<EngineState::Buffer> EngineState::buffers() const {
  const std::unique_lock<std::mutex> lock = locked(buffers_->mutex);
  std::vector<Buffer> out;
  for (const auto& [name, buffer] : buffers_->buffers) {
    Buffer entry{name, std::string(to_string(buffer.dtype)), {}, buffer.nbytes};
    for (std::size_t d = 0; d < buffer.shape.rank(); ++d) {
      entry.sizes.push_back(buffer.shape[d]);
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Error EngineState::reset() {
  Status status;
  {
    const std::unique_lock<std::mutex> lock = locked(buffers_->mutex);
    for (auto& [name, buffer] : buffers_->buffers) {
      Status own = buffer.reset();
      status = status.ok() ? own : status;
    }
  }
  return status.ok() ? Error::Ok : buffers_->failures.report(status);
}

Error EngineState::read(const std::string& name, void* data, std::size_t nbytes) const {
  return with_buffer(*buffers_, name, nbytes, [&](BufferMemory& memory) { return memory.read(data); });
}

Error EngineState::write(const std::string& name, const void* data, std::size_t nbytes) {
  return with_buffer(*buffers_, name, nbytes, [&](BufferMemory& memory) { return memory.write(data); });
}

EngineStateGuard::EngineStateGuard(const EngineState& state)
    : Guard(GuardStackOf<std::shared_ptr<EngineBuffers>>::push("EngineStateGuard", asked, state.buffers_)) {}

}  // namespace executorch_tensorrt
