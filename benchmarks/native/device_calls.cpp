// Steady calls of a delegate on a device, for Callgrind to count: see instructions.py. The engine and CUDA are the
// tests' fakes, and none of theirs is counted. Prints the calls of each kind in their order, as etrt_microbench does.
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../tests/fakes/cudart.h"
#include "../../tests/native/delegate.h"
#include "../../tests/native/fake_engine.h"
#include "counting.h"
#include "delegate/options.h"
#include "executorch_tensorrt/cuda_stream_guard.h"

namespace {

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;
using executorch::runtime::EValue;

constexpr int kCalls = 100;
constexpr int kRows = 3;
constexpr int kOnDevice = 2;  // as cudaMemoryType

void check(bool ok, const char* what) {
  if (!ok) {
    std::fprintf(stderr, "%s failed\n", what);
    std::exit(1);
  }
}

FakeDevice fake_device() {
  using Work = std::function<void()>;
  const auto enqueue = [](void* stream, Work work) {
    const auto run = [](void* queued) { (*static_cast<Work*>(queued))(); };
    const auto release = [](void* queued) { delete static_cast<Work*>(queued); };
    fake_cuda_enqueue(stream, run, new Work(std::move(work)), release);
  };
  return {0, enqueue, fake_cuda_at};
}

std::string metadata(const std::string& dtype) {
  const std::string of = R"(","dtype":")" + dtype + R"(","is_input":)";
  return R"({"io_bindings":[{"name":"x)" + of + R"(true},{"name":"y)" + of +
         R"(false}],"executorch_tensorrt":{"version":1,"engine_kind":"fake","engine_id":"0123456789ab",)" +
         R"("profiles":[{"inputs":[{"min":[1,2],"opt":[2,2],"max":[4,2]}]}]}})";
}

struct Memory {
  explicit Memory(bool on_device)
      : is_on_device(on_device), data(on_device ? fake_cuda_allocate(kBytes, kOnDevice, 0) : std::calloc(1, kBytes)) {}
  ~Memory() { is_on_device ? fake_cuda_free(data) : std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  static constexpr std::size_t kBytes = kRows * 2 * sizeof(std::int64_t);
  const bool is_on_device;
  void* const data;
};

struct Kind {
  const char* name;
  bool on_device = false;
  bool on_stream = false;
  bool replayed = false;
  bool narrowed = false;  // int64, of an engine that has int32
};

void count(const Kind& kind) {
  fake_log().device = fake_device();
  fake_log().narrows_int64 = kind.narrowed;
  const auto dtype = kind.narrowed ? executorch::aten::ScalarType::Long : executorch::aten::ScalarType::Float;
  Delegate delegate(fake_blob(metadata(kind.narrowed ? "int64" : "float32")));
  executorch::runtime::BackendOptions<1> options;
  check(options.set_option(kCudaGraphsKey, kind.replayed) == Error::Ok, "the option");
  const auto view = options.view();
  check(delegate.init({view.data(), view.size()}) == Error::Ok, "loading");

  const Memory input(kind.on_device), output(kind.on_device);
  const auto x = executorch::extension::from_blob(input.data, {kRows, 2}, dtype);
  const auto y = executorch::extension::from_blob(output.data, {kRows, 2}, dtype);
  EValue values[] = {EValue(*x), EValue(*y)};
  std::vector<EValue*> arguments{&values[0], &values[1]};
  void* const stream = kind.on_stream ? fake_cuda_stream_create(0) : nullptr;
  std::optional<CudaStreamGuard> guard;
  if (kind.on_stream) {
    guard.emplace(stream);
  }
  const auto call = [&] {
    check(delegate.execute(arguments) == Error::Ok, kind.name);
    if (kind.on_stream) {
      fake_cuda_run(stream);
    }
  };
  for (int k = 0; k < 3; ++k) {
    call();  // what runs once; with graphs, the third replays what the second recorded
  }
  counting_begins();
  for (int k = 0; k < kCalls; ++k) {
    call();
  }
  counting_ends();
  guard.reset();
  delegate.destroy();
  if (kind.on_stream) {
    fake_cuda_stream_destroy(stream);
  }
}

}  // namespace

int main() {
  setenv("ETRT_CUDART", ETRT_FAKE_CUDART, 1);
  fake_cuda_reset(1);
  register_fake_engine();
  const Kind kinds[] = {
      {"device arrays", true},
      {"device arrays on a stream", true, true},
      {"device arrays replayed", true, true, true},
      {"device arrays of int64", true, false, false, true},
      {"host arrays"},
      {"host arrays replayed", false, false, true},
      {"host arrays of int64", false, false, false, true},
  };
  std::printf("{\"compiler\": \"%s\", \"calls\": %d, \"parts\": [", __VERSION__, kCalls);
  const char* separator = "";
  for (const Kind& kind : kinds) {
    count(kind);
    std::printf("%s[\"%s\"]", std::exchange(separator, ", "), kind.name);
  }
  std::printf("]}\n");
  return 0;
}
