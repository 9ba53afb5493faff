// Memory that is aligned further than `new` does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace executorch_tensorrt {

template <std::size_t kAlignment>
struct AlignedDelete {
  void operator()(void* bytes) const { ::operator delete[](bytes, std::align_val_t{kAlignment}); }
};

template <std::size_t kAlignment>
using AlignedBytes = std::unique_ptr<std::uint8_t[], AlignedDelete<kAlignment>>;

// Null when there is no memory; one byte where none is asked for.
template <std::size_t kAlignment>
AlignedBytes<kAlignment> aligned_bytes(std::size_t nbytes) {
  void* const bytes = ::operator new[](std::max<std::size_t>(nbytes, 1), std::align_val_t{kAlignment}, std::nothrow);
  return AlignedBytes<kAlignment>(static_cast<std::uint8_t*>(bytes));
}

}  // namespace executorch_tensorrt
