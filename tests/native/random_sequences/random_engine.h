// An engine on the fake CUDA whose outputs tell which inputs, engine, profile, state and activation memory they were
// made with. One call is four works on the stream, which hand over in activation memory.
//
//   a, b [rows, 6], and perhaps a state of 2 -> x, y [rows, 6], and the next state
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engines/engine.h"

namespace executorch_tensorrt::testing {

constexpr int kColumns = 6;  // so that the largest calls need more than the least that is staged

constexpr int kMostRows = 16;
constexpr int kStateSize = 2;

struct RowsOfProfile {
  int min, max;
};
constexpr RowsOfProfile kProfiles[] = {{1, 4}, {3, 16}, {2, 9}};
constexpr int kNumProfiles = 3;

// All numbers are whole and small, so that floats hold them exactly.
float x_of(float a, float b, int profile, int engine);
float y_of(float b, float state, int profile, int engine);
float next_state_of(float state, float first_of_a, int profile, int engine);

// What happened since the test looked last, and what is to go wrong.
struct RandomEngineLog {
  int enqueued = 0;  // works, on streams and into graphs
  std::string misused;
  std::string fail_at;  // "load", "memory", "context", "shape", "infer", "input", "output", "enqueue", "layers"
  int fail_after = 0;   // of that kind, so many succeed before
  int fail_how = 0;     // 0 an internal error, 1 no memory, 2 std::bad_alloc, 3 std::runtime_error
  bool failed = false;
};

RandomEngineLog& random_engine_log();

enum class StateKind { kNone, kInPlace, kTwoBlocks };

// Of an engine with the number `engine`, of kind "random".
std::string random_engine_blob(int engine, StateKind state, const std::string& initial_hex);

void register_random_engine(int device);

}  // namespace executorch_tensorrt::testing
