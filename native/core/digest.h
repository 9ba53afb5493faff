// What an engine id is made of.
#pragma once

#include <cstddef>
#include <string>

namespace executorch_tensorrt {

// SHA-256 in hexadecimal.
std::string sha256(const void* data, std::size_t size);

}  // namespace executorch_tensorrt
