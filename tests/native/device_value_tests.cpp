// Memory wherever it lies, and the values that come out.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "device_caller.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::extension::from_blob;
using executorch::runtime::Error;
using executorch::runtime::etensor::Device;
using executorch::runtime::etensor::DeviceType;
using Lines = std::vector<std::string>;

namespace {

constexpr Place kPlaces[] = {Place::kMalloc, Place::kPinned, Place::kDevice, Place::kManaged};

std::string binding(const std::string& name, const std::string& type, bool is_input) {
  return R"({"name":")" + name + R"(","dtype":")" + type + R"(","is_input":)" + (is_input ? "true}" : "false}");
}

// `inputs` and `outputs` are names of one letter, all of one dtype and with 0 to 64 rows of 2; `keys` are further ones.
std::string metadata(const std::string& inputs, const std::string& outputs, const std::string& dtype,
                     const std::string& keys = "", const std::string& ours = "") {
  std::string bindings;
  std::string ranges;
  for (const char name : inputs + outputs) {
    const bool is_input = inputs.find(name) != std::string::npos;
    bindings += (bindings.empty() ? "" : ",") + binding(std::string(1, name), dtype, is_input);
    if (is_input) {
      ranges += std::string(ranges.empty() ? "" : ",") + R"({"min":[0,2],"opt":[2,2],"max":[64,2]})";
    }
  }
  return R"({"io_bindings":[)" + bindings + "]" + keys +
         R"(,"executorch_tensorrt":{"version":1,"engine_kind":"fake","engine_id":"0123456789ab","profiles":[{"inputs":[)" +
         ranges + "]}]" + ours + "}}";
}

// A delegate on device 0, and calls on tensors that the test makes.
struct Caller {
  explicit Caller(const std::string& text, bool narrows_int64 = false) : delegate(fake_blob(text)) {
    fake_log() = {};
    fake_log().device = FakeCuda::device();
    fake_log().narrows_int64 = narrows_int64;
    register_fake_engine();
    BOOST_TEST_REQUIRE((delegate.init() == Error::Ok));
  }

  Error run(const std::vector<executorch::extension::TensorPtr>& tensors) {
    std::vector<Delegate::EValue> values;
    for (const auto& tensor : tensors) {
      values.emplace_back(*tensor);
    }
    std::vector<Delegate::EValue*> args;
    for (Delegate::EValue& value : values) {
      args.push_back(&value);
    }
    return delegate.execute(args);
  }

  Delegate delegate;
};

template <typename T>
executorch::extension::TensorPtr tensor_of(const Block<T>& block, int rows, Device device = Device(DeviceType::CPU)) {
  constexpr auto type = sizeof(T) == 8 ? executorch::aten::ScalarType::Long : executorch::aten::ScalarType::Float;
  return from_blob(block.data(), {rows, 2}, type, device);
}

using Ints = std::vector<std::int64_t>;
constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();

}  // namespace

BOOST_AUTO_TEST_SUITE(device_value)

BOOST_AUTO_TEST_CASE(outputs_are_right_from_and_to_all_memory_in_all_sizes) {
  FakeCuda cuda;
  for (const Place in : kPlaces) {
    for (const Place out : kPlaces) {
      DeviceCaller caller(in, out);
      BOOST_TEST_REQUIRE((caller.load() == Error::Ok));
      const auto guard = OptimizationProfileGuard::automatic();
      for (const int rows : {1, 16, 2, 4, 9, 16, 1}) {
        BOOST_TEST((caller.run(rows) == Error::Ok));
        BOOST_TEST(caller.right());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(staging_memory_only_grows) {
  FakeCuda cuda;
  Caller caller(R"({"io_bindings":[)" + binding("a", "float32", true) + "," + binding("x", "float32", false) +
                R"(],"executorch_tensorrt":{"version":1,"engine_kind":"fake","engine_id":"0123456789ab","profiles":[)" +
                R"({"inputs":[{"min":[1,2],"opt":[1,2],"max":[999,2]}]}]}})");
  const Block<float> in(2000, Place::kMalloc);
  const Block<float> out(2000, Place::kMalloc);
  const auto allocations_of = [&](int rows) {
    FakeCuda::take_log();
    BOOST_TEST((caller.run({tensor_of(in, rows), tensor_of(out, 999)}) == Error::Ok));
    Lines lines;
    for (const std::string& line : FakeCuda::take_log()) {
      if (line.find("Malloc") == 0 || line.find("Free") == 0) {
        lines.push_back(line);
      }
    }
    return lines;
  };
  BOOST_TEST(allocations_of(100) == (Lines{"Malloc 800", "Malloc 800", "MallocHost 800"}),
             boost::test_tools::per_element());
  BOOST_TEST(allocations_of(50).empty());
  BOOST_TEST(allocations_of(101) == (Lines{"Free", "Malloc 808", "Free", "Malloc 808", "FreeHost", "MallocHost 808"}),
             boost::test_tools::per_element());
  BOOST_TEST(allocations_of(101).empty());
}

BOOST_AUTO_TEST_CASE(staging_memory_grows_only_when_the_work_that_uses_it_is_done) {
  FakeCuda cuda;
  // The output is not taken, so that its memory is the delegate's, and everything else lies on the device.
  Caller caller(metadata("a", "xy", "float32", "", R"(,"arguments":{"inputs":[0],"outputs":[1,null]})"));
  const Block<float> in(16, Place::kDevice);
  const Block<float> out(16, Place::kDevice);
  const Block<float> host(16, Place::kMalloc);
  OwnStream stream;
  BOOST_TEST((caller.run({tensor_of(in, 2), tensor_of(out, 8)}) == Error::Ok));
  BOOST_TEST(fake_cuda_pending(stream.handle) == 1);
  FakeCuda::take_log();
  BOOST_TEST((caller.run({tensor_of(host, 2), tensor_of(out, 8)}) == Error::Ok));
  const Lines log = FakeCuda::take_log();
  const auto waited = std::find(log.begin(), log.end(), "EventSynchronize e1");
  BOOST_TEST((waited != log.end() && std::find(waited, log.end(), "Malloc 256") != log.end()));
}

BOOST_AUTO_TEST_CASE(memory_of_another_device_is_refused_and_both_devices_are_named) {
  FakeCuda cuda;
  Caller caller(metadata("a", "x", "float32"));
  const Block<float> here(16, Place::kDevice, 0);
  const Block<float> there(16, Place::kDevice, 1);
  BOOST_TEST((caller.run({tensor_of(there, 2), tensor_of(here, 8)}) == Error::InvalidArgument));
  BOOST_TEST(
      take_last_error() ==
      "method 'forward', engine 0123456789ab: input 'a' lies on another device: got 1, allowed 0; copy it there");
  BOOST_TEST((caller.run({tensor_of(here, 2), tensor_of(there, 8)}) == Error::InvalidArgument));
  BOOST_TEST(
      take_last_error() ==
      "method 'forward', engine 0123456789ab: output 'x' lies on another device: got 1, allowed 0; copy it there");
  BOOST_TEST(fake_log().enqueue == 0);
  const Block<float> out(16, Place::kDevice, 0);
  BOOST_TEST((caller.run({tensor_of(here, 2), tensor_of(out, 8)}) == Error::Ok));
}

BOOST_AUTO_TEST_CASE(memory_on_the_host_is_refused_where_the_program_has_it_on_the_device) {
  FakeCuda cuda;
  Caller caller(metadata("a", "x", "float32"));
  const Device device(DeviceType::CUDA, 0);
  const Block<float> good(16, Place::kDevice);
  for (const Place place : {Place::kMalloc, Place::kPinned}) {
    const Block<float> host(16, place);
    BOOST_TEST((caller.run({tensor_of(host, 2, device), tensor_of(good, 8, device)}) == Error::InvalidArgument));
    BOOST_TEST(
        take_last_error() ==
        "method 'forward', engine 0123456789ab: input 'a' is planned on CUDA device 0, and its memory lies on the "
        "host: give device memory, or export without skipping the copies at the method's border");
    BOOST_TEST((caller.run({tensor_of(good, 2, device), tensor_of(host, 8, device)}) == Error::InvalidArgument));
    BOOST_TEST(take_last_error().find("output 'x' is planned on CUDA device 0") != std::string::npos);
  }
  BOOST_TEST(fake_log().enqueue == 0);
  const Block<float> out(16, Place::kDevice);
  BOOST_TEST((caller.run({tensor_of(good, 2, device), tensor_of(out, 8, device)}) == Error::Ok));
}

BOOST_AUTO_TEST_CASE(int64_is_narrowed_and_widened_with_its_sign) {
  FakeCuda cuda;
  for (const Place in : kPlaces) {
    for (const Place out : kPlaces) {
      Caller caller(metadata("a", "x", "int64"), true);
      Block<std::int64_t> a(16, in);
      Block<std::int64_t> x(16, out);
      for (const Ints& values : {Ints{-1, kMin, kMax, 0}, Ints{5, -7, kMax, kMin, 3, -3}}) {
        a.set(values);
        x.fill(99);
        const int rows = static_cast<int>(values.size() / 2);
        BOOST_TEST((caller.run({tensor_of(a, rows), tensor_of(x, 8)}) == Error::Ok));
        Ints expected(16, 99);
        std::copy(values.begin(), values.end(), expected.begin());
        BOOST_TEST(x.values() == expected);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_engine_of_int32_is_given_the_size_of_what_it_writes) {
  FakeCuda cuda;
  for (const Place place : kPlaces) {
    Caller caller(metadata("a", "xy", "int64", "", R"(,"arguments":{"inputs":[0],"outputs":[1,null]})"), true);
    Block<std::int64_t> a(128, place);
    const Block<std::int64_t> x(128, place);
    a.fill(-5);
    BOOST_TEST((caller.run({tensor_of(a, 64), tensor_of(x, 64)}) == Error::Ok));
    BOOST_TEST(x.values() == Ints(128, -5));
  }
}

BOOST_AUTO_TEST_CASE(int64_that_does_not_fit_is_named_where_the_host_can_see_it) {
  FakeCuda cuda;
  Caller caller(metadata("a", "x", "int64"), true);
  Block<std::int64_t> a(16, Place::kMalloc);
  const Block<std::int64_t> x(16, Place::kMalloc);
  for (const std::int64_t value : {kMax + 1, kMin - 1}) {
    a.set({1, 2, value, 4});
    BOOST_TEST((caller.run({tensor_of(a, 2), tensor_of(x, 8)}) == Error::InvalidArgument));
    BOOST_TEST(take_last_error() == "method 'forward', engine 0123456789ab: input 'a' element 2: got " +
                                        std::to_string(value) +
                                        ", allowed are numbers of 32 bits, since this TensorRT has no int64");
    BOOST_TEST(fake_log().enqueue == 0);
    BOOST_TEST(x.values() == Ints(16, -1));
  }
  a.set({1, 2, kMax, kMin});
  BOOST_TEST((caller.run({tensor_of(a, 2), tensor_of(x, 8)}) == Error::Ok));
  BOOST_TEST(x.values()[3] == kMin);
}

BOOST_AUTO_TEST_CASE(int64_on_the_device_is_narrowed_there_by_one_copy) {
  FakeCuda cuda;
  Caller caller(metadata("a", "x", "int64"), true);
  const Block<std::int64_t> a(16, Place::kDevice);
  const Block<std::int64_t> x(16, Place::kDevice);
  BOOST_TEST((caller.run({tensor_of(a, 2), tensor_of(x, 8)}) == Error::Ok));
  FakeCuda::take_log();
  BOOST_TEST((caller.run({tensor_of(a, 2), tensor_of(x, 8)}) == Error::Ok));
  const Lines log = FakeCuda::take_log();
  BOOST_TEST(std::count(log.begin(), log.end(), "Memcpy2DAsync D2D 4x4 per-thread") == 1);
}

BOOST_AUTO_TEST_CASE(a_copy_that_fails_on_the_way_to_or_from_int32_leaves_nothing_at_work) {
  FakeCuda cuda;
  int injected = 0;
  for (const char* function : {"cudaMemcpy2DAsync", "cudaMemcpyAsync", "cudaMemcpy", "cudaStreamSynchronize"}) {
    for (const Place place : {Place::kMalloc, Place::kDevice}) {
      for (int position = 0;; ++position) {
        Caller caller(metadata("ab", "xy", "int64"), true);
        Block<std::int64_t> a(16, place);
        Block<std::int64_t> b(16, place);
        const Block<std::int64_t> x(16, place);
        const Block<std::int64_t> y(16, place);
        a.fill(3);
        b.fill(-4);
        const std::vector<executorch::extension::TensorPtr> tensors = {tensor_of(a, 8), tensor_of(b, 8),
                                                                       tensor_of(x, 8), tensor_of(y, 8)};
        OwnStream stream;
        fake_cuda_fail(function, position, 700, 0);
        const Error error = caller.run(tensors);
        if (!fake_cuda_failed()) {
          break;
        }
        ++injected;
        BOOST_TEST((error == Error::Internal));
        BOOST_TEST(fake_cuda_pending(stream.handle) == 0);
        BOOST_TEST((caller.run(tensors) == Error::Ok));
        BOOST_TEST(x.values() == Ints(16, 3));
        BOOST_TEST(y.values() == Ints(16, -4));
      }
    }
  }
  BOOST_TEST(injected >= 10);
}

BOOST_AUTO_TEST_CASE(an_engine_that_has_int64_gets_it) {
  FakeCuda cuda;
  Caller caller(metadata("a", "x", "int64"));
  Block<std::int64_t> a(16, Place::kMalloc);
  const Block<std::int64_t> x(16, Place::kMalloc);
  a.set({kMax + 1, kMin - 1});
  BOOST_TEST((caller.run({tensor_of(a, 1), tensor_of(x, 8)}) == Error::Ok));
  BOOST_TEST(x.values()[0] == kMax + 1);
  BOOST_TEST(x.values()[1] == kMin - 1);
}

BOOST_AUTO_TEST_CASE(tensors_without_elements_have_an_address_and_are_not_copied) {
  FakeCuda cuda;
  for (const bool narrows : {false, true}) {
    for (const Place place : kPlaces) {
      Caller caller(metadata("a", "x", "int64"), narrows);
      Block<std::int64_t> a(16, place);
      const Block<std::int64_t> x(16, place);
      FakeCuda::take_log();
      const auto out = tensor_of(x, 8);
      BOOST_TEST((caller.run({tensor_of(a, 0), out}) == Error::Ok));
      BOOST_TEST(out->size(0) == 0);
      BOOST_TEST(fake_log().outputs_kept == 0);
      for (const std::string& line : FakeCuda::take_log()) {
        BOOST_TEST(line.find("Memcpy") == std::string::npos, line);
      }
      const auto none = from_blob(nullptr, {0, 2}, executorch::aten::ScalarType::Long);
      BOOST_TEST((caller.run({none, tensor_of(x, 8)}) == Error::Ok));
      a.set({7, 8});
      BOOST_TEST((caller.run({tensor_of(a, 1), tensor_of(x, 8)}) == Error::Ok));
      BOOST_TEST(x.values()[1] == 8);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_output_that_the_program_does_not_take_is_written_to_the_delegates_memory) {
  FakeCuda cuda;
  for (const Place place : {Place::kMalloc, Place::kDevice}) {
    Caller caller(metadata("a", "xy", "float32", "", R"(,"arguments":{"inputs":[0],"outputs":[1,null]})"));
    Block<float> a(16, place);
    const Block<float> x(16, place);
    a.fill(3);
    OwnStream stream;
    BOOST_TEST((caller.run({tensor_of(a, 8), tensor_of(x, 8)}) == Error::Ok));
    BOOST_TEST((fake_cuda_pending(stream.handle) == 0) == (place == Place::kMalloc));
    fake_cuda_run(stream.handle);
    BOOST_TEST(x.values() == std::vector<float>(16, 3));
    BOOST_TEST(fake_log().outputs_kept == 0);
  }
}

BOOST_AUTO_TEST_CASE(what_is_written_in_place_of_an_input_is_in_the_callers_memory_of_both) {
  FakeCuda cuda;
  for (const Place in : kPlaces) {
    for (const Place out : kPlaces) {
      // a, k -> x and l, which is written in place of k.
      Caller caller(metadata("ak", "xl", "float32", R"(,"aliased_io":[{"output":"l","input":"k"}])"));
      Block<float> a(16, in);
      Block<float> k(16, in);
      const Block<float> x(16, out);
      const Block<float> l(16, out);
      for (int call = 1; call <= 2; ++call) {
        if (call == 1) {
          k.set({10, 20, 30, 40});
        }
        OwnStream stream;
        BOOST_TEST((caller.run({tensor_of(a, 2), tensor_of(k, 2), tensor_of(x, 8), tensor_of(l, 8)}) == Error::Ok));
        BOOST_TEST(fake_cuda_pending(stream.handle) == 0);  // the copy to l is done
        const auto added = static_cast<float>(call);
        std::vector<float> expected(16, -1);
        expected[0] = 10 + added;
        expected[1] = 20 + added;
        expected[2] = 30 + added;
        expected[3] = 40 + added;
        BOOST_TEST(k.values() == expected);
        BOOST_TEST(l.values() == expected);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_update_in_place_on_the_device_with_one_memory_for_both_is_not_copied_and_returns_early) {
  FakeCuda cuda;
  Caller caller(metadata("ak", "xl", "float32", R"(,"aliased_io":[{"output":"l","input":"k"}])"));
  const Block<float> a(16, Place::kDevice);
  Block<float> k(16, Place::kDevice);
  const Block<float> x(16, Place::kDevice);
  k.fill(1);
  OwnStream stream;
  for (int call = 0; call < 3; ++call) {
    BOOST_TEST((caller.run({tensor_of(a, 8), tensor_of(k, 8), tensor_of(x, 8), tensor_of(k, 8)}) == Error::Ok));
  }
  BOOST_TEST(fake_cuda_pending(stream.handle) == 3);
  fake_cuda_run(stream.handle);
  BOOST_TEST(k.values() == std::vector<float>(16, 4));
}

BOOST_AUTO_TEST_SUITE_END()
