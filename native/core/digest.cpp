#include "core/digest.h"

#include <boost/hash2/sha2.hpp>

namespace executorch_tensorrt {

std::string sha256(const void* data, std::size_t size) {
  boost::hash2::sha2_256 hash;
  hash.update(data, size);
  return to_string(hash.result());
}

}  // namespace executorch_tensorrt
