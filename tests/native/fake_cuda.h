// The fake CUDA runtime under the delegate, and engines that work on it.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../fakes/cudart.h"
#include "fake_engine.h"

namespace executorch_tensorrt::testing {

// A machine with GPUs, while it lives; then nothing may be left of what was made on it.
class FakeCuda {
 public:
  explicit FakeCuda(int devices = 2) {
    static const int named = setenv("ETRT_CUDART", ETRT_FAKE_CUDART, 1);  // kept: the library is loaded once
    BOOST_TEST_REQUIRE(named == 0);
    fake_cuda_reset(devices);
  }
  ~FakeCuda() {
    fake_cuda_fail("", 0, 0, 0);
    BOOST_TEST(fake_cuda_allocations() == allocations_);
    BOOST_TEST(fake_cuda_objects() == objects_);
    BOOST_TEST(fake_cuda_last_error() == 0);
    fake_log() = {};
  }
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // What fake_log().device may be, on this machine.
  static FakeDevice device(int index = 0) {
    using Work = std::function<void()>;
    const auto enqueue = [](void* stream, Work work) {
      const auto run = [](void* queued) { (*static_cast<Work*>(queued))(); };
      const auto release = [](void* queued) { delete static_cast<Work*>(queued); };
      fake_cuda_enqueue(stream, run, new Work(std::move(work)), release);
    };
    return {index, enqueue, fake_cuda_at};
  }

  static std::vector<std::string> take_log() {
    std::istringstream text(fake_cuda_take_log());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) {
      lines.push_back(line);
    }
    return lines;
  }

 private:
  const int allocations_ = fake_cuda_allocations();
  const int objects_ = fake_cuda_objects();
};

enum class Place { kMalloc = 0, kPinned = 1, kDevice = 2, kManaged = 3 };

// A caller's memory, of any kind; -1 everywhere.
template <typename T>
class Block {
 public:
  Block(std::size_t count, Place place, int device = 0)
      : count_(count),
        place_(place),
        data_(place == Place::kMalloc ? std::malloc(count * sizeof(T))
                                      : fake_cuda_allocate(count * sizeof(T), static_cast<int>(place), device)) {
    fill(T(-1));
  }
  ~Block() { place_ == Place::kMalloc ? std::free(data_) : fake_cuda_free(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* data() const { return data_; }
  T* begin() const { return static_cast<T*>(fake_cuda_at(data_, count_ * sizeof(T))); }
  T* end() const { return begin() + count_; }
  void fill(T value) { std::fill(begin(), end(), value); }
  void set(const std::vector<T>& values) { std::copy(values.begin(), values.end(), begin()); }
  std::vector<T> values() const { return {begin(), end()}; }

 private:
  std::size_t count_;
  Place place_;
  void* data_;
};

}  // namespace executorch_tensorrt::testing
