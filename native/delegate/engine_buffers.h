// The memory behind an EngineState.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/buffer_memory.h"
#include "core/internal.h"
#include "core/scalar_type.h"
#include "core/shape.h"
#include "core/status.h"
#include "device/stream_order.h"
#include "process/failure.h"

namespace executorch_tensorrt {

// What an engine asks for.
struct WantedBuffer {
  std::string name;
  ScalarType dtype = ScalarType::kUnknown;
  Shape shape;
  std::string initial;        // empty for zeros
  std::optional<int> device;  // whose memory the engine works on
  bool updated_in_place = true;
};

struct EngineBuffer {
  ScalarType dtype = ScalarType::kUnknown;
  Shape shape;
  std::size_t nbytes = 0;
  std::string initial;
  std::optional<int> device;
  std::unique_ptr<BufferMemory> memory;

  Status reset() { return initial.empty() ? memory->clear() : memory->write(initial.data()); }
};

// What an engine gets, in the order in which it asked.
struct SharedBuffers {
  std::vector<EngineBuffer*> buffers;
  std::shared_ptr<StreamOrder> order;  // of the calls that use them; null on the host
};

class EngineBuffers {
 public:
  // The buffers of those names, made with their initial value on first use. Fails, and makes none, when another engine
  // has one with another dtype, shape, initial value or device, or when there is no memory. Buffers stay where they are
  // as long as this lives.
  Result<SharedBuffers> share(const std::vector<WantedBuffer>& wanted);

  // Taken by a call after its engine's own mutex, and held to the call's end. Guards the buffers' contents.
  std::mutex mutex;
  std::map<std::string, EngineBuffer> buffers;

  FailureLog failures{"engine state"};  // used without the mutex

 private:
  static Status check(const EngineBuffer& buffer, const WantedBuffer& wanted);
  Result<EngineBuffer> make(const WantedBuffer& wanted);
  Result<std::unique_ptr<BufferMemory>> make_memory(const EngineBuffer& buffer, const std::string& name);

  std::map<int, std::shared_ptr<StreamOrder>> orders_;  // by device
};

// What methods that this thread loads share; null without an EngineStateGuard.
ETRT_INTERNAL std::shared_ptr<EngineBuffers> current_engine_buffers();

}  // namespace executorch_tensorrt
