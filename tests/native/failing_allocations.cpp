#include "failing_allocations.h"

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace executorch_tensorrt::testing {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

thread_local int passing = kNever;
thread_local bool fails_on = false;
thread_local int num_failed = 0;

bool fails() {
  if (passing == kNever) {
    return false;
  }
  if (passing > 0) {
    --passing;
    return false;
  }
  ++num_failed;
  if (!fails_on) {
    passing = kNever;
  }
  return true;
}

}  // namespace

void* allocate(std::size_t size, std::size_t alignment) {
  if (fails()) {
    return nullptr;
  }
  if (alignment <= alignof(std::max_align_t)) {
    return std::malloc(size == 0 ? 1 : size);
  }
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

FailingAllocations::FailingAllocations(int pass, Which which) {
  num_failed = 0;
  fails_on = which == Which::kAllAfter;
  passing = pass;
}

FailingAllocations::~FailingAllocations() { passing = kNever; }

int FailingAllocations::failed() const { return num_failed; }

}  // namespace executorch_tensorrt::testing

using executorch_tensorrt::testing::allocate;
using executorch_tensorrt::testing::allocate_or_throw;
using Alignment = std::align_val_t;

constexpr std::size_t kPlain = alignof(std::max_align_t);

// All of them, because a sanitizer's runtime replaces all of them too.
void* operator new(std::size_t n) { return allocate_or_throw(n, kPlain); }
void* operator new[](std::size_t n) { return allocate_or_throw(n, kPlain); }
void* operator new(std::size_t n, Alignment a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, Alignment a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kPlain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kPlain); }
void* operator new(std::size_t n, Alignment a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, Alignment a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, Alignment) noexcept { std::free(p); }
void operator delete[](void* p, Alignment) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, Alignment) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, Alignment) noexcept { std::free(p); }
