// What the user is told where CUDA can't be used, and what happens then to programs that need it.
#include <executorch/extension/module/module.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>

#include "../fakes/cudart.h"
#include "delegate.h"
#include "device/cuda.h"
#include "executorch_tensorrt/last_error.h"
#include "fake_engine.h"
#include "process/log.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;

namespace {

void use(const std::string& library) { setenv("ETRT_CUDART", library.c_str(), 1); }

std::string why_not() {
  const Result<const Cuda*> cuda = Cuda::get();
  BOOST_TEST_REQUIRE(!cuda.ok());
  BOOST_TEST((cuda.status().code() == StatusCode::kNotSupported));
  return cuda.status().message();
}

}  // namespace

// In this order: the last case can use CUDA, and that is kept.
BOOST_AUTO_TEST_SUITE(cuda)

BOOST_AUTO_TEST_CASE(a_library_that_is_not_there_is_named) {
  use("/no/such/libcudart.so");
  BOOST_TEST(
      why_not() ==
      "CUDA can't be used here: no library of its runtime was found, tried /no/such/libcudart.so; install it, or "
      "name its file in the environment variable ETRT_CUDART");
}

BOOST_AUTO_TEST_CASE(a_library_without_a_function_is_named_with_the_version_that_has_it) {
  use(ETRT_FAKE_OLD_CUDART);
  BOOST_TEST(why_not() ==
             "CUDA can't be used here: the library has no cudaStreamIsCapturing, wanted CUDA 11.0 or later");
}

BOOST_AUTO_TEST_CASE(a_machine_without_a_driver_is_told_what_to_do) {
  use(ETRT_FAKE_CUDART);
  fake_cuda_set_versions(12040, 0);
  BOOST_TEST(why_not() ==
             "CUDA can't be used here: no NVIDIA driver is loaded; install one, or export with engine=\"cpu\" to run "
             "here");
}

BOOST_AUTO_TEST_CASE(a_driver_that_is_too_old_is_told_both_versions) {
  fake_cuda_set_versions(12040, 11080);
  BOOST_TEST(why_not() ==
             "CUDA can't be used here: the driver is for CUDA 11.8, the library is of CUDA 12.4; update the driver, or "
             "name an older library in ETRT_CUDART");
}

BOOST_AUTO_TEST_CASE(a_machine_without_a_gpu_is_told_where_to_look) {
  fake_cuda_set_versions(12040, 12040);
  fake_cuda_set_devices(0);
  BOOST_TEST(why_not() ==
             "CUDA can't be used here: there is no GPU that this process may use; look at CUDA_VISIBLE_DEVICES");
}

BOOST_AUTO_TEST_CASE(another_error_comes_in_cudas_words) {
  fake_cuda_set_devices(1);
  fake_cuda_fail("cudaGetDeviceCount", 0, 700, 0);
  BOOST_TEST(why_not() ==
             "CUDA can't be used here: an illegal memory access was encountered (cudaErrorIllegalAddress)");
}

BOOST_AUTO_TEST_CASE(an_engine_on_a_device_does_not_load_without_one) {
  fake_cuda_reset(0);
  fake_log() = {};
  fake_log().device = FakeDevice{};
  register_fake_engine();
  Delegate delegate(fake_blob());
  BOOST_TEST((delegate.init() == Error::NotSupported));
  BOOST_TEST(take_last_error() ==
             "method 'forward': CUDA can't be used here: there is no GPU that this process may use; look at "
             "CUDA_VISIBLE_DEVICES");
  BOOST_TEST(fake_log().engines == fake_log().engines_freed);
}

BOOST_AUTO_TEST_CASE(a_program_with_device_memory_does_not_load_and_the_log_says_why) {
  executorch::extension::Module module(ETRT_TEST_DATA "/torch_tensorrt_2.14_two_profiles.pte",
                                       executorch::extension::Module::LoadMode::File);
  keep_messages();
  take_messages();
  BOOST_TEST((module.load_method("forward") == Error::NotSupported));
  const auto messages = take_messages();
  BOOST_TEST_REQUIRE(messages.size() == 1u);
  BOOST_TEST((messages[0].level == LogLevel::kError));
  BOOST_TEST(messages[0].text ==
             "memory on a CUDA device: CUDA can't be used here: there is no GPU that this process may use; look at "
             "CUDA_VISIBLE_DEVICES");
}

BOOST_AUTO_TEST_CASE(no_error_is_left_in_cuda) { BOOST_TEST(fake_cuda_last_error() == 0); }

BOOST_AUTO_TEST_CASE(the_first_try_that_succeeds_is_kept) {
  fake_cuda_reset(1);
  const Result<const Cuda*> cuda = Cuda::get();
  BOOST_TEST_REQUIRE(cuda.ok());
  BOOST_TEST((*cuda)->describe(0) == "Fake GPU, compute capability 9.0, driver for CUDA 12.4");
  use("/no/such/libcudart.so");
  fake_cuda_set_devices(0);
  BOOST_TEST(Cuda::get().ok());
}

BOOST_AUTO_TEST_SUITE_END()
