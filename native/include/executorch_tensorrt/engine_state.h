// EngineState: the buffers that engines own and update in place (KV caches), for the methods that share them.
#pragma once

#include <executorch/runtime/core/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executorch_tensorrt/api.h"
#include "executorch_tensorrt/guard.h"

namespace executorch_tensorrt {

class EngineBuffers;

// Methods that are loaded under an EngineStateGuard share their engines' buffers by name: what one of them writes, the
// others read. A method that is loaded without a guard has buffers of its own, which end with it.
//
//   executorch_tensorrt::EngineState state;
//   {
//     executorch_tensorrt::EngineStateGuard guard(state);
//     module.load_method("prefill");
//     module.load_method("decode");
//   }
//   state.reset();
//
// Buffers lie where their engine works: on the host or on a device.
//
// Copies are the same state. Thread-safe: every function waits for calls that use the buffers, also for those that
// returned before a device was done.
class EngineState {
 public:
  struct Buffer {
    std::string name;   // the model's, such as "layers.0.k_cache"
    std::string dtype;  // "float32"
    std::vector<std::int64_t> sizes;
    std::size_t nbytes = 0;
  };

  ETRT_API EngineState();

  // Those of the engines that were loaded so far, by name.
  ETRT_API std::vector<Buffer> buffers() const;

  // Gives every buffer its initial value.
  ETRT_API executorch::runtime::Error reset();

  // Copies a buffer out, row-major, or in. InvalidArgument when there is none of that name or it has another size in
  // bytes; Internal when its device fails. take_last_error() says so.
  ETRT_API executorch::runtime::Error read(const std::string& name, void* data, std::size_t nbytes) const;
  ETRT_API executorch::runtime::Error write(const std::string& name, const void* data, std::size_t nbytes);

 private:
  friend class EngineStateGuard;
  std::shared_ptr<EngineBuffers> buffers_;
};

// Until it ends, methods that the calling thread loads share `state`.
class [[nodiscard]] EngineStateGuard : public Guard {
 public:
  ETRT_API explicit EngineStateGuard(const EngineState& state);
};

}  // namespace executorch_tensorrt
