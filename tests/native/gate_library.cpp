// For tests in Python: engine kind "gated", which copies its inputs to its outputs and has a gate in every call.
#include "fake_engine.h"
#include "gate.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;

namespace {

std::unique_ptr<Gate>& gate() {
  static std::unique_ptr<Gate> instance;
  return instance;
}

}  // namespace

extern "C" {

// With no call under way.
void gate_begin() {
  gate() = std::make_unique<Gate>();
  on_fake_enqueue() = [] { gate()->pass(); };
  register_fake_engine("gated");
}

void gate_end() {
  gate()->open();
  register_engine_runtime("gated", nullptr);
}

void gate_close() { gate()->close(); }
void gate_open() { gate()->open(); }
bool gate_wait_until_inside(int calls) { return gate()->wait_until_inside(calls); }
int gate_most_inside() { return gate()->most_inside(); }
}
