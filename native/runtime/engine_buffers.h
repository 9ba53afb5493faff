// The memory behind an EngineState.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/metadata.h"
#include "core/shape.h"
#include "core/status.h"
#include "runtime/failure.h"

namespace executorch_tensorrt {

struct EngineBuffer {
  ScalarType dtype = ScalarType::kUnknown;
  Shape shape;
  std::size_t nbytes = 0;
  std::string initial;  // empty for zeros

  void reset();
  std::uint8_t* data() const { return memory_.get(); }

 private:
  friend class EngineBuffers;
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(std::uint8_t* bytes) const { ::operator delete[](bytes, kAlignment); }
  };
  std::unique_ptr<std::uint8_t[], Delete> memory_;
};

// What an engine asks for.
struct WantedBuffer {
  const OwnedBuffer* owned;
  ScalarType dtype;
  Shape shape;
};

class EngineBuffers {
 public:
  // The buffers of those names, made with their initial value on first use. Fails, and makes none, when another engine
  // has one with another dtype, shape or initial value, or when there is no memory. Buffers stay where they are as long
  // as this lives.
  Result<std::vector<EngineBuffer*>> share(const std::vector<WantedBuffer>& wanted);

  // Taken by a call after its engine's own mutex, and held to the call's end. Guards the buffers' contents.
  std::mutex mutex;
  std::map<std::string, EngineBuffer> buffers;

  FailureLog failures{"engine state"};  // used without the mutex

 private:
  static Status check(const EngineBuffer& buffer, const WantedBuffer& wanted);
  static Result<EngineBuffer> make(const WantedBuffer& wanted);
};

// What methods that this thread loads share; null without an EngineStateGuard.
std::shared_ptr<EngineBuffers> current_engine_buffers();

}  // namespace executorch_tensorrt
