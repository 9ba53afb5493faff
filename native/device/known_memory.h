// Device memory that this library allocated, so that nobody has to ask CUDA where it lies, which takes about as long as
// recording an event.
#pragma once

#include <cstddef>
#include <optional>

namespace executorch_tensorrt {

void remember_device_memory(const void* data, std::size_t nbytes, int device);
// Before it is freed.
void forget_device_memory(const void* data);

// The device of memory that is remembered, wherever in it `data` points.
std::optional<int> known_device_of(const void* data);

}  // namespace executorch_tensorrt
