// The CPU engine of the blobs given as arguments, when host memory runs out and when bytes are damaged. ExecuTorch's
// and XNNPACK's own code is among what finds no memory here, as far as it uses operator new.
#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "at_every_allocation.h"
#include "core/blob.h"
#include "core/metadata.h"
#include "delegate.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::Error;
using executorch::runtime::EValue;

namespace {

std::vector<std::string> blobs() {
  std::vector<std::string> out;
  const auto& suite = boost::unit_test::framework::master_test_suite();
  for (int k = 1; k < suite.argc; ++k) {
    std::ifstream file(suite.argv[k], std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  BOOST_TEST_REQUIRE(!out.empty());
  return out;
}

// Arguments of a delegate, as large as a profile allows.
class Arguments {
 public:
  Arguments(const EngineMetadata& metadata, std::size_t profile) {
    const ProfileTable& profiles = *metadata.record->profiles;
    std::vector<Shape> inputs;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < profiles.num_inputs(); ++i) {
      Shape shape;
      shape.resize(profiles.ranges(profile, i).size());
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        shape[d] = profiles.ranges(profile, i)[d].max;
      }
      inputs.push_back(shape);
      names.push_back(profiles.input_name(i));
      add(metadata.inputs[i], shape);
    }
    std::vector<Shape> outputs;
    BOOST_TEST_REQUIRE(metadata.record->shapes->infer(inputs, names, outputs).ok());
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      first_output = o == 0 ? tensors.size() : first_output;
      add(metadata.outputs[o], outputs[o]);
    }
    for (const auto& tensor : tensors) {
      values.emplace_back(*tensor);
    }
    for (EValue& value : values) {
      args.push_back(&value);
    }
  }

  void clear_outputs() {
    for (std::size_t k = first_output; k < memory.size(); ++k) {
      memory[k].assign(memory[k].size(), 0xee);
    }
  }

  std::vector<std::vector<std::uint8_t>> outputs() const {
    return {memory.begin() + static_cast<std::ptrdiff_t>(first_output), memory.end()};
  }

  std::vector<EValue*> args;

 private:
  void add(const Binding& binding, const Shape& shape) {
    if (!binding.argument) {
      return;
    }
    std::size_t nbytes = 0;
    BOOST_TEST_REQUIRE(size_in_bytes(shape, element_size(binding.dtype), nbytes));
    memory.emplace_back(nbytes, std::uint8_t{0});
    std::vector<executorch::aten::SizesType> sizes;
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      sizes.push_back(static_cast<executorch::aten::SizesType>(shape[d]));
    }
    tensors.push_back(executorch::extension::from_blob(memory.back().data(), sizes,
                                                       static_cast<executorch::aten::ScalarType>(binding.dtype)));
  }

  std::vector<std::vector<std::uint8_t>> memory;
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<EValue> values;
  std::size_t first_output = 0;
};

EngineMetadata metadata_of(const std::string& blob) {
  const auto view = parse_blob(blob.data(), blob.size());
  BOOST_TEST_REQUIRE(view.ok());
  return *parse_metadata(view->metadata);
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_that_finds_no_memory_does_not_load) {
  for (const std::string& blob : blobs()) {
    Arguments arguments(metadata_of(blob), 0);
    at_every_allocation(50, [&](int passing, Which which) {
      Delegate delegate(blob);
      Error error = Error::Ok;
      int failed = 0;
      {
        const FailingAllocations failing(passing, which);
        error = delegate.init();
        failed = failing.failed();
      }
      BOOST_TEST((failed > 0 || error == Error::Ok));
      (void)take_last_error();
      if (error != Error::Ok) {
        BOOST_TEST((delegate.init() == Error::Ok));
      }
      BOOST_TEST((delegate.execute(arguments.args) == Error::Ok));
      return failed > 0;
    });
  }
}

// The first call of a profile loads its method and takes the memory that profiles share. One allocation fails: XNNPACK
// ends the process when it cannot allocate while it destroys what it could not make.
BOOST_AUTO_TEST_CASE(a_call_that_finds_no_memory_fails_and_the_next_one_is_right) {
  for (const std::string& blob : blobs()) {
    const EngineMetadata metadata = metadata_of(blob);
    for (std::size_t profile = 0; profile < metadata.record->profiles->num_profiles(); ++profile) {
      const OptimizationProfileGuard guard(static_cast<int>(profile));
      Arguments arguments(metadata, profile);
      Delegate reference(blob);
      BOOST_TEST_REQUIRE((reference.init() == Error::Ok));
      BOOST_TEST_REQUIRE((reference.execute(arguments.args) == Error::Ok));
      const auto expected = arguments.outputs();
      for (const int calls_before : {0, 1}) {
        at_every_allocation(0,
                            [&](int passing, Which which) {
                              Delegate delegate(blob);
                              BOOST_TEST_REQUIRE((delegate.init() == Error::Ok));
                              for (int call = 0; call < calls_before; ++call) {
                                BOOST_TEST((delegate.execute(arguments.args) == Error::Ok));
                              }
                              arguments.clear_outputs();
                              Error error = Error::Ok;
                              int failed = 0;
                              {
                                const FailingAllocations failing(passing, which);
                                error = delegate.execute(arguments.args);
                                failed = failing.failed();
                              }
                              BOOST_TEST((failed > 0 || error == Error::Ok));
                              (void)take_last_error();
                              BOOST_TEST((error != Error::Ok || arguments.outputs() == expected));
                              arguments.clear_outputs();
                              BOOST_TEST((delegate.execute(arguments.args) == Error::Ok));
                              BOOST_TEST((arguments.outputs() == expected));
                              return failed > 0;
                            },
                            {Which::kOne});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_engine_with_any_damaged_byte_is_refused) {
  for (const std::string& blob : blobs()) {
    const auto view = parse_blob(blob.data(), blob.size());
    const auto engine = static_cast<std::size_t>(view->engine - reinterpret_cast<const std::uint8_t*>(blob.data()));
    for (std::size_t at = engine; at < blob.size(); at += 7) {
      std::string damaged = blob;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      Delegate delegate(damaged);
      BOOST_TEST((delegate.init() == Error::InvalidProgram));
      BOOST_TEST(take_last_error().find("the engine has other bytes than its id says: got ") != std::string::npos);
    }
  }
}
