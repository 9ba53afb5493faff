#include "executorch_tensorrt/engine_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/engine_buffers.h"

namespace executorch_tensorrt {
namespace {

using executorch::runtime::Error;

// One per process, because it lives in this shared library and nowhere else.
thread_local std::shared_ptr<EngineBuffers> thread_buffers;

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

// Applies `use` to the buffer; a mistake is reported after the mutex is free again.
template <typename Use>
Error with_buffer(EngineBuffers& buffers, const std::string& name, std::size_t nbytes, Use&& use) {
  Status status;
  {
    const std::lock_guard<std::mutex> lock(buffers.mutex);
    const Result<EngineBuffer*> buffer = find(buffers, name, nbytes);
    if (buffer.ok()) {
      use(**buffer);
      return Error::Ok;
    }
    status = buffer.status();
  }
  return buffers.failures.report(status);
}

}  // namespace

std::shared_ptr<EngineBuffers> current_engine_buffers() { return thread_buffers; }

void EngineBuffer::reset() {
  if (initial.empty()) {
    std::memset(data(), 0, nbytes);
  } else {
    std::memcpy(data(), initial.data(), nbytes);
  }
}

Status EngineBuffers::check(const EngineBuffer& buffer, const WantedBuffer& wanted) {
  if (buffer.dtype == wanted.dtype && buffer.shape == wanted.shape && buffer.initial == wanted.owned->initial) {
    return {};
  }
  return invalid_program("buffer '" + wanted.owned->name + "' is " + std::string(to_string(wanted.dtype)) + " " +
                         to_string(wanted.shape) + " here and " + std::string(to_string(buffer.dtype)) + " " +
                         to_string(buffer.shape) +
                         " in a method loaded before, or begins with another value; methods that share a state have "
                         "the same buffers");
}

Result<EngineBuffer> EngineBuffers::make(const WantedBuffer& wanted) {
  const OwnedBuffer& owned = *wanted.owned;
  EngineBuffer buffer;
  buffer.dtype = wanted.dtype;
  buffer.shape = wanted.shape;
  if (wanted.dtype == ScalarType::kUnknown) {
    return invalid_program("buffer '" + owned.name + "' has no dtype, neither in the program nor by its engine");
  }
  if (!size_in_bytes(buffer.shape, element_size(buffer.dtype), buffer.nbytes)) {
    return invalid_program("buffer '" + owned.name + "' has a size that no memory has: " + to_string(buffer.shape));
  }
  if (!owned.initial.empty() && owned.initial.size() != buffer.nbytes) {
    return invalid_program("buffer '" + owned.name + "' has an initial value of " +
                           std::to_string(owned.initial.size()) + " bytes, wanted " + std::to_string(buffer.nbytes));
  }
  buffer.initial = owned.initial;
  void* memory = ::operator new[](std::max<std::size_t>(buffer.nbytes, 1), EngineBuffer::kAlignment, std::nothrow);
  if (memory == nullptr) {
    return Status(StatusCode::kOutOfMemory,
                  "no memory for buffer '" + owned.name + "' of " + std::to_string(buffer.nbytes) + " bytes");
  }
  buffer.memory_.reset(static_cast<std::uint8_t*>(memory));
  buffer.reset();
  return buffer;
}

Result<std::vector<EngineBuffer*>> EngineBuffers::share(const std::vector<WantedBuffer>& wanted) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::map<std::string, EngineBuffer> made;
  std::vector<EngineBuffer*> shared;
  for (const WantedBuffer& want : wanted) {
    if (const auto found = buffers.find(want.owned->name); found != buffers.end()) {
      if (Status status = check(found->second, want); !status.ok()) {
        return status;
      }
      shared.push_back(&found->second);
      continue;
    }
    Result<EngineBuffer> buffer = make(want);
    if (!buffer.ok()) {
      return buffer.status();
    }
    shared.push_back(&made.emplace(want.owned->name, std::move(*buffer)).first->second);
  }
  buffers.merge(made);  // moves the nodes, not the buffers
  return shared;
}

EngineState::EngineState() : buffers_(std::make_shared<EngineBuffers>()) {}

std::vector<EngineState::Buffer> EngineState::buffers() const {
  const std::lock_guard<std::mutex> lock(buffers_->mutex);
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

void EngineState::reset() {
  const std::lock_guard<std::mutex> lock(buffers_->mutex);
  for (auto& entry : buffers_->buffers) {
    entry.second.reset();
  }
}

Error EngineState::read(const std::string& name, void* data, std::size_t nbytes) const {
  return with_buffer(*buffers_, name, nbytes, [&](const EngineBuffer& buffer) {
    std::copy_n(buffer.data(), nbytes, static_cast<std::uint8_t*>(data));
  });
}

Error EngineState::write(const std::string& name, const void* data, std::size_t nbytes) {
  return with_buffer(*buffers_, name, nbytes, [&](const EngineBuffer& buffer) {
    std::copy_n(static_cast<const std::uint8_t*>(data), nbytes, buffer.data());
  });
}

EngineStateGuard::EngineStateGuard(const EngineState& state)
    : previous_(std::exchange(thread_buffers, state.buffers_)) {}

EngineStateGuard::~EngineStateGuard() { thread_buffers = std::move(previous_); }

}  // namespace executorch_tensorrt
