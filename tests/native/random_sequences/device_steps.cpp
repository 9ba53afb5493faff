// Sequences of the device world, drawn.
#include <algorithm>

#include "device_world.h"

namespace executorch_tensorrt::testing {

namespace {

constexpr const char* kLevels[] = {"off", "off", "delegate", "phases", "phases", "layers"};
constexpr const char* kPlaces[] = {"malloc", "pinned", "device", "managed"};

std::string name_of_stream(int stream) {
  constexpr const char* names[] = {"s0", "s1", "s2", "the default stream", "the thread's stream", "no stream"};
  return names[stream];
}

std::string name_of_request(int request) {
  return request == kDefault     ? "no request"
         : request == kAutomatic ? "automatic"
                                 : "profile " + std::to_string(request);
}

// Functions that may fail in a call, a load or an unload, and whether they may when they have done their work: what
// they would have made is lost then.
struct Function {
  const char* name;
  bool late;
};
constexpr Function kOfCalls[] = {
    {"cudaMalloc", false},           {"cudaMemcpyAsync", true},
    {"cudaEventRecord", true},       {"cudaStreamWaitEvent", true},
    {"cudaGraphLaunch", true},       {"cudaStreamBeginCapture", false},
    {"cudaStreamEndCapture", true},  {"cudaGraphInstantiateWithFlags", false},
    {"cudaEventQuery", true},        {"cudaEventSynchronize", true},
    {"cudaStreamSynchronize", true}, {"cudaPointerGetAttributes", true},
    {"cudaStreamIsCapturing", true}, {"cudaEventCreateWithFlags", false},
    {"cudaEventElapsedTime", true},  {"cudaGetDevice", true},
};
constexpr Function kOfLoads[] = {{"cudaMalloc", false},           {"cudaEventCreateWithFlags", false},
                                 {"cudaMemsetAsync", true},       {"cudaMemcpyAsync", true},
                                 {"cudaStreamSynchronize", true}, {"cudaStreamCreateWithFlags", false},
                                 {"cudaGetDeviceCount", true},    {"cudaGetDevice", true}};
constexpr Function kOfUnloads[] = {
    {"cudaEventSynchronize", true}, {"cudaEventQuery", true}, {"cudaEventElapsedTime", true}};
constexpr Function kOfStates[] = {{"cudaMemcpyAsync", true},
                                  {"cudaMemsetAsync", true},
                                  {"cudaStreamSynchronize", true},
                                  {"cudaEventSynchronize", true}};

template <std::size_t N>
Fault draw_cuda_fault(Draw& draw, const Function (&functions)[N]) {
  const Function& function = draw.of(functions);
  constexpr int errors[] = {2, 700};
  Fault fault{Fault::kCuda, function.name, draw.below(4), draw.of(errors), false};
  fault.late = function.late && draw.one_in(2);
  return fault;
}

Fault draw_fault_of_call(Draw& draw) {
  if (draw.one_in(8)) {
    return {Fault::kNoMemory, "", draw.below(2) * 400, 0, false};
  }
  if (draw.one_in(2)) {
    return draw_cuda_fault(draw, kOfCalls);
  }
  constexpr const char* at[] = {"memory", "context", "shape", "infer", "input", "output", "enqueue", "layers"};
  const int kind = draw.below(8);
  return {Fault::kEngine, at[kind], kind < 2 ? 0 : draw.below(3), draw.below(4), false};
}

// What a sequence does often, and what it never does.
struct Habits {
  explicit Habits(Draw& draw) {
    faults = draw.one_in(2) ? draw.between(3, 12) : 0;
    bad = draw.one_in(2) ? draw.between(4, 20) : 0;
    for (int k = draw.between(1, 4); k > 0; --k) {
      std::array<Argument, 4> arguments;
      const bool device = !draw.one_in(3);
      for (Argument& argument : arguments) argument = draw_argument(draw, device);
      favourites.push_back(arguments);
    }
    for (int k = draw.between(1, 6); k > 0; --k) rows.push_back(draw.between(1, kMostRows));
    for (int k = draw.between(1, 4); k > 0; --k) streams.push_back(draw.below(kNoStream + 1));
    for (int slot = 0; slot < kNumSlots; ++slot) {
      Load load;
      load.slot = slot;
      load.state = static_cast<StateKind>(draw.below(3));
      load.shares = draw.one_in(4) ? -1 : draw.below(kNumStates);
      load.graphs = !draw.one_in(3);
      load.level = draw.of(kLevels);
      load.request = draw.one_in(2) ? kAutomatic : draw.between(kDefault, kNumProfiles - 1);
      loads.push_back(load);
    }
    most_used = draw.one_in(2) ? draw.below(kNumSlots) : -1;
    for (int k = 0; k < 9; ++k) weights.push_back(draw.one_in(4) ? 0 : draw.between(1, 4));
    weights[0] = 40;
  }

  static Argument draw_argument(Draw& draw, bool device) {
    constexpr int places[] = {2, 2, 3, 0, 1};
    return {device ? (draw.one_in(5) ? 3 : 2) : draw.of(places), draw.below(kBuffersOfPlace)};
  }

  int faults = 0;  // one in so many; 0: never
  int bad = 0;
  std::vector<std::array<Argument, 4>> favourites;
  std::vector<int> rows;
  std::vector<int> streams;
  std::vector<Load> loads;
  int most_used = -1;
  std::vector<int> weights;
};

int fitting(Draw& draw, int rows) {
  int profile = draw.below(kNumProfiles);
  while (rows < kProfiles[profile].min || rows > kProfiles[profile].max) {
    profile = (profile + 1) % kNumProfiles;
  }
  return profile;
}

Call draw_call(Draw& draw, const Habits& habits) {
  Call call;
  call.slot = habits.most_used >= 0 && !draw.one_in(4) ? habits.most_used : draw.below(kNumSlots);
  call.rows = draw.one_in(6) ? draw.between(1, kMostRows) : draw.of(habits.rows);
  call.request = draw.one_in(2) ? kAutomatic : draw.one_in(4) ? kDefault : fitting(draw, call.rows);
  call.stream = draw.one_in(6) ? draw.below(kNoStream + 1) : draw.of(habits.streams);
  call.arguments = draw.of(habits.favourites);
  if (draw.one_in(6)) {
    call.arguments[static_cast<std::size_t>(draw.below(4))] = Habits::draw_argument(draw, draw.one_in(2));
  }
  call.filled = static_cast<unsigned>(draw.below(16));
  call.fresh = draw.one_in(8) ? static_cast<unsigned>(draw.below(16)) : 0;
  call.traced = draw.one_in(2);
  if (habits.bad != 0 && draw.one_in(habits.bad)) {
    constexpr int rows[] = {0, kMostRows + 1, kMostRows + 4};
    constexpr int requests[] = {kNumProfiles, kNumProfiles + 100};
    switch (draw.below(3)) {
      case 0:
        call.rows = draw.of(rows);
        break;
      case 1:
        call.request = draw.of(requests);
        break;
      default:
        call.bad = static_cast<Bad>(draw.between(1, 4));
    }
  }
  if (habits.faults != 0 && draw.one_in(habits.faults)) {
    call.fault = draw_fault_of_call(draw);
  }
  return call;
}

using Steps = std::vector<Step<DeviceWorld>>;

void add(Steps& steps, const Call& call) {
  steps.push_back({call.text(), [call](DeviceWorld& world) { world.call(call); }});
}

void add_again(Draw& draw, Steps& steps, Call call, int times) {
  for (; times > 0; --times) {
    call.filled = static_cast<unsigned>(draw.below(16));
    add(steps, call);
  }
}

// More kinds of calls than there are graphs for, and some of them with other memory then.
void add_rows(Draw& draw, const Habits& habits, Steps& steps, Call call) {
  const int first = draw.between(1, 3);
  call.request = kAutomatic;
  for (call.rows = first; call.rows <= kMostRows; ++call.rows) {
    add(steps, call);
    add(steps, call);
  }
  call.arguments = draw.of(habits.favourites);
  for (int k = draw.below(4); k > 0; --k) {
    call.rows = draw.one_in(2) ? first : draw.between(first, kMostRows);
    call.fresh = static_cast<unsigned>(draw.below(16));
    add(steps, call);
    call.fresh = 0;
    add_again(draw, steps, call, draw.between(1, 3));
  }
}

void add_capture(Draw& draw, Steps& steps, Call call, bool is_prepared) {
  call.stream = draw.below(kNumStreams);
  call.bad = Bad::kNothing;
  const int graph = draw.below(kNumGraphs);
  steps.push_back(
      {"graph " + std::to_string(graph) + " of the caller's: " + (is_prepared ? "twice " : "") + call.text(),
       [=](DeviceWorld& world) { world.capture(call, graph, is_prepared); }});
}

// One call, or several of a kind: the same again, at other addresses each time, of all numbers of rows, or before and
// after another one.
void add_calls(Draw& draw, const Habits& habits, Steps& steps) {
  Call call = draw_call(draw, habits);
  add(steps, call);
  call.fault = {};
  const int what = draw.below(24);
  if (what < 6) {
    add_again(draw, steps, call, draw.between(1, 4));
  } else if (what < 9) {
    call.fresh = static_cast<unsigned>(draw.between(1, 15));
    const bool moves_to_other_streams = draw.one_in(2);
    for (int k = draw.between(4, 9); k > 0; --k) {
      call.stream = moves_to_other_streams ? draw.of(habits.streams) : call.stream;
      add(steps, call);
    }
  } else if (what < 11) {
    add_rows(draw, habits, steps, call);
  } else if (what < 14) {
    Call between = draw_call(draw, habits);
    between.slot = call.slot;
    between.fault = habits.faults != 0 ? draw_fault_of_call(draw) : Fault();
    add_again(draw, steps, call, draw.between(1, 3));
    add(steps, between);
    if (draw.one_in(3)) {
      between = call;  // may fail on its way to what a capture needs
      between.fault = habits.faults != 0 ? draw_fault_of_call(draw) : Fault();
      add(steps, between);
      add_capture(draw, steps, call, false);
    }
    add_again(draw, steps, call, draw.between(1, 2));
  }
}

void add_load(Draw& draw, const Habits& habits, Steps& steps, int slot, bool may_fail) {
  Load load = habits.loads[static_cast<std::size_t>(slot)];
  if (may_fail && habits.faults != 0 && draw.one_in(habits.faults)) {
    load.fault = draw.one_in(4)   ? Fault{Fault::kEngine, "load", 0, draw.below(4), false}
                 : draw.one_in(4) ? Fault{Fault::kNoMemory, "", 0, 0, false}
                                  : draw_cuda_fault(draw, kOfLoads);
  }
  load.level = draw.one_in(3) ? draw.of(kLevels) : load.level;
  steps.push_back({load.text(), [load](DeviceWorld& world) { world.load(load); }});
}

void add_unload(Draw& draw, const Habits& habits, Steps& steps) {
  const int slot = draw.below(kNumSlots);
  const Fault fault = habits.faults != 0 && draw.one_in(habits.faults) ? draw_cuda_fault(draw, kOfUnloads) : Fault();
  steps.push_back(
      {"unload " + std::to_string(slot) + fault.text(), [=](DeviceWorld& world) { world.unload(slot, fault); }});
  if (!draw.one_in(3)) {
    add_load(draw, habits, steps, slot, true);
  }
}

void add_state_step(Draw& draw, const Habits& habits, Steps& steps) {
  const int state = draw.below(kNumStates);
  const std::string name = "state " + std::to_string(state);
  const Fault fault = habits.faults != 0 && draw.one_in(habits.faults) ? draw_cuda_fault(draw, kOfStates) : Fault();
  switch (draw.below(3)) {
    case 0:
      steps.push_back({"read " + name, [=](DeviceWorld& world) { world.read_state(state); }});
      break;
    case 1:
      steps.push_back({"write " + name + fault.text(), [=](DeviceWorld& world) { world.write_state(state, fault); }});
      break;
    default:
      steps.push_back({"reset " + name + fault.text(), [=](DeviceWorld& world) { world.reset_state(state, fault); }});
  }
}

void add_stream_step(Draw& draw, Steps& steps) {
  const int stream = draw.below(kNoStream);
  if (draw.one_in(12)) {
    const int number = draw.below(100);
    steps.push_back(
        {"run all of any queue, " + std::to_string(number), [=](DeviceWorld& world) { world.run_any(number); }});
  } else if (draw.one_in(6)) {
    const int own = draw.below(kNumStreams);
    steps.push_back({"destroy " + name_of_stream(own) + ", and make another one with its handle",
                     [=](DeviceWorld& world) { world.make_stream_again(own); }});
  } else if (draw.one_in(3)) {
    steps.push_back({"wait for " + name_of_stream(stream), [=](DeviceWorld& world) { world.synchronize(stream); }});
  } else {
    const int count = draw.one_in(3) ? 1000 : draw.between(1, 8);
    steps.push_back({"run " + std::to_string(count) + " of " + name_of_stream(stream),
                     [=](DeviceWorld& world) { world.run(stream, count); }});
  }
}

void add_launch(Draw& draw, Steps& steps) {
  const int graph = draw.below(kNumGraphs);
  const int stream = draw.below(kNoStream);
  steps.push_back({"launch graph " + std::to_string(graph) + " on " + name_of_stream(stream),
                   [=](DeviceWorld& world) { world.launch(graph, stream); }});
}

void add_level(Draw& draw, Steps& steps) {
  const std::string level = draw.one_in(4) ? "" : draw.of(kLevels);
  steps.push_back(
      {level.empty() ? "clear the level" : "level " + level, [=](DeviceWorld& world) { world.set_level(level); }});
}

}  // namespace

std::string Fault::text() const {
  const std::string place = " (fails: " + at + " at " + std::to_string(position) + ", " + std::to_string(how) +
                            (late ? ", when it is done)" : ")");
  return kind == kNothing    ? ""
         : kind == kNoMemory ? " (with " + std::to_string(position) + " bytes of memory)"
         : kind == kEngine   ? " (the engine " + place.substr(2)
                             : place;
}

std::string Load::text() const {
  constexpr const char* kinds[] = {"no state", "a state in place", "a state in two blocks"};
  std::string text = "load " + std::to_string(slot) + ": " + kinds[static_cast<int>(state)];
  if (state != StateKind::kNone) {
    text += shares >= 0 ? ", state " + std::to_string(shares) : ", of its own";
  }
  return text + (graphs ? ", CUDA graphs" : "") + ", level " + level + ", " + name_of_request(request) + fault.text();
}

std::string Call::text() const {
  constexpr const char* names = "abxy";
  constexpr const char* wrongs[] = {"", ", one on the other device", ", one too few", ", one of int32",
                                    ", outputs too small"};
  std::string text = "call " + std::to_string(slot) + ": " + std::to_string(rows) + " rows, " +
                     name_of_request(request) + ", on " + name_of_stream(stream);
  for (std::size_t k = 0; k < 4; ++k) {
    text += std::string(", ") + names[k] + " " + kPlaces[arguments[k].place] + " " +
            std::to_string(arguments[k].index) + ((fresh >> k & 1) != 0 ? " moved" : "") +
            ((filled >> k & 1) != 0 ? " filled" : "");
  }
  return text + (traced ? ", traced" : "") + wrongs[static_cast<int>(bad)] + fault.text();
}

std::vector<Step<DeviceWorld>> draw_device_steps(Draw& draw) {
  const Habits habits(draw);
  Steps steps;
  for (int slot = 0; slot < kNumSlots; ++slot) {
    add_load(draw, habits, steps, slot, false);
  }
  while (steps.size() < 50) {
    switch (draw.weighed(habits.weights)) {
      case 0:
        add_calls(draw, habits, steps);
        break;
      case 1:
      case 2:
        add_stream_step(draw, steps);
        break;
      case 3:
        add_state_step(draw, habits, steps);
        break;
      case 4: {
        const bool is_prepared = !draw.one_in(3);
        add_capture(draw, steps, draw_call(draw, habits), is_prepared);
        break;
      }
      case 5:
        add_launch(draw, steps);
        break;
      case 6:
        add_level(draw, steps);
        break;
      case 7:
        add_unload(draw, habits, steps);
        break;
      default: {
        const Argument argument = Habits::draw_argument(draw, false);
        steps.push_back({"move " + std::string(kPlaces[argument.place]) + " " + std::to_string(argument.index),
                         [=](DeviceWorld& world) { world.move(argument); }});
      }
    }
  }
  return steps;
}

}  // namespace executorch_tensorrt::testing
