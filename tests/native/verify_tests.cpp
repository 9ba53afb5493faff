// verify() of the file that Torch-TensorRT wrote, as it is and with each of its bytes changed.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "executorch_tensorrt/verify.h"

using namespace executorch_tensorrt;

namespace {

const std::string kProgram = std::string(ETRT_TEST_DATA) + "/torch_tensorrt_2.14_two_profiles.pte";

struct alignas(16) Block {
  char bytes[16];
};

struct Program {
  Program() {
    std::ifstream file(kProgram, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    size = text.size();
    blocks.resize(size / sizeof(Block) + 1);
    std::memcpy(blocks.data(), text.data(), size);
  }
  char* bytes() { return blocks.data()->bytes; }

  std::vector<Block> blocks;
  std::size_t size = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(verify_has_nothing_against_a_good_program) {
  Program program;
  BOOST_TEST(verify(kProgram) == "");
  BOOST_TEST(verify(program.bytes(), program.size) == "");
}

BOOST_AUTO_TEST_CASE(verify_says_why_a_file_is_none) {
  BOOST_TEST(verify("/no/such.pte").find("'/no/such.pte' is no ExecuTorch program, or is damaged") == 0u);
}

BOOST_AUTO_TEST_CASE(verify_names_method_and_value_of_a_changed_program_and_returns) {
  Program program;
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < std::min<std::size_t>(program.size, 4096); ++at) {
    for (const char change : {'\x01', '\x7f', '\xff'}) {
      program.bytes()[at] ^= change;
      texts.push_back(verify(program.bytes(), program.size));
      program.bytes()[at] ^= change;
    }
  }
  const auto any = [&](const char* part) {
    return std::any_of(texts.begin(), texts.end(),
                       [part](const std::string& text) { return text.find(part) != std::string::npos; });
  };
  BOOST_TEST(any("method 'forward': value "));
  BOOST_TEST(any("method 'forward': instruction 0: argument: got "));
  BOOST_TEST(any("method 'forward': delegate 0: "));
}
