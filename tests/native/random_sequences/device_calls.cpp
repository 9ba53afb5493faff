// Delegates of the device world: loading, calls, and graphs of the caller's.

#include <optional>

#include "../caller_graphs.h"
#include "delegate/options.h"
#include "device_world.h"
#include "executorch_tensorrt/cuda_stream_guard.h"
#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/optimization_profile_guard.h"

extern "C" int cudaGetLastError();

namespace executorch_tensorrt::testing {

using executorch::extension::from_blob;
using executorch::runtime::Error;

namespace {

std::string hex_of(const std::vector<float>& floats) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  const auto* bytes = reinterpret_cast<const unsigned char*>(floats.data());
  for (std::size_t k = 0; k < floats.size() * sizeof(float); ++k) {
    text += digits[bytes[k] >> 4];
    text += digits[bytes[k] & 15];
  }
  return text;
}

bool fits(int profile, int rows) { return rows >= kProfiles[profile].min && rows <= kProfiles[profile].max; }

std::string number(Error error) {
  return "error " + std::to_string(static_cast<int>(error)) + ": " + take_last_error();
}

}  // namespace

void DeviceWorld::load(const Load& step) {
  unload(step.slot, {});
  Slot& slot = slots_[static_cast<std::size_t>(step.slot)];
  slot.loaded = step;
  slot.number = ++next_number_;
  slot.state = nullptr;
  if (slot.has_state()) {
    if (step.state == StateKind::kTwoBlocks && step.shares >= 0) {
      drop_graphs_of_state(step.shares);
    }
    slot.state = step.shares >= 0 ? states_[static_cast<std::size_t>(step.shares)] : std::make_shared<State>();
    slot.state->initial.resize(kStateSize);
    slot.state->holds.resize(kStateSize);
  }
  executorch::runtime::BackendOptions<3> options;
  bool set = options.set_option("torchtrt_profile_level", step.level.c_str()) == Error::Ok &&
             options.set_option(kCudaGraphsKey, step.graphs) == Error::Ok;
  if (step.request == kAutomatic) {
    set = set && options.set_option(kOptimizationProfileKey, "auto") == Error::Ok;
  } else if (step.request >= 0) {
    set = set && options.set_option(kOptimizationProfileKey, step.request) == Error::Ok;
  }
  if (!set) {
    wrong("no such options");
  }
  const bool zeros = !slot.state || slot.state->initial == std::vector<float>(kStateSize, 0.0f);
  auto delegate = std::make_unique<Delegate>(
      random_engine_blob(step.slot, step.state, zeros ? std::string() : hex_of(slot.state->initial)));
  arm(step.fault);
  Error error;
  {
    std::optional<EngineStateGuard> guard;
    if (slot.state && step.shares >= 0) guard.emplace(slot.state->state);
    const auto view = options.view();
    error = delegate->init({view.data(), view.size()});
  }
  const bool happened = disarm();
  if (error == Error::Ok) {
    slot.delegate = std::move(delegate);
    if (slot.state) {
      slot.state->exists = true;
      slot.state->in_two_blocks = slot.state->in_two_blocks || step.state == StateKind::kTwoBlocks;
    }
  } else if (!happened && step.fault.kind != Fault::kNoMemory) {
    wrong("a delegate is not loaded: " + number(error));
  }
  if (!slot.delegate) {
    slot.state = nullptr;
  }
  for (const auto& state : states_) {
    if (state->state.buffers().empty() == state->exists) {
      wrong(state->exists ? "a state has lost its buffers" : "a load that failed leaves buffers in a state");
    }
  }
  check_left_alone();
}

void DeviceWorld::unload(int number, const Fault& fault) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  if (!slot.delegate) {
    return;
  }
  drop_graphs_of(number);
  arm(fault);
  slot.delegate.reset();
  (void)disarm();
  known_done({nullptr, slot.number, nullptr});
  slot.engine.uses.clear();
  slot.state = nullptr;
  check_left_alone();
}

int DeviceWorld::expected_profile(const Slot& slot, const Call& step) const {
  int request = step.request == kDefault ? slot.loaded.request : step.request;
  if (step.bad != Bad::kNothing) {
    return -1;
  }
  if (request == kAutomatic) {
    for (int profile = 0; profile < kNumProfiles; ++profile) {
      if (fits(profile, step.rows)) return profile;
    }
    return -1;
  }
  request = request == kDefault ? 0 : request;
  return request < kNumProfiles && fits(request, step.rows) ? request : -1;
}

// Chooses memory for the arguments, no output's twice.
std::optional<DeviceWorld::Made> DeviceWorld::make(const Call& step) {
  Slot& slot = slots_[static_cast<std::size_t>(step.slot)];
  if (!slot.delegate) {
    return std::nullopt;
  }
  Made made;
  made.profile = expected_profile(slot, step);
  bool on_device = true;
  for (std::size_t k = 0; k < 4; ++k) {
    Argument argument = step.arguments[k];
    const auto taken = [&] {
      for (std::size_t before = 0; before < k; ++before) {
        if (made.buffers[before] == buffer(argument)) return true;
      }
      return false;
    };
    while (k >= 2 && taken()) {
      argument.index = (argument.index + 1) % kBuffersOfPlace;
    }
    BufferPtr& chosen = buffer(argument);
    const bool taken_by_b = k == 1 && chosen == made.buffers[0];
    if ((step.fresh >> k & 1) != 0 && !taken_by_b) {
      renew(chosen);
    }
    if ((step.filled >> k & 1) != 0 && !taken_by_b) {
      k < 2 ? fill(*chosen) : spoil(*chosen);
    }
    made.buffers[k] = chosen;
    on_device = on_device && argument.place >= 2;
  }
  made.queue = step.stream == kNoStream ? queue_of(kThreadsStream) : queue_of(step.stream);
  made.early = step.stream != kNoStream && on_device;
  return made;
}

Error DeviceWorld::execute(Slot& slot, const Call& step, Made& made) {
  std::vector<Delegate::EValue> values;
  const int most_rows = step.bad == Bad::kSmallOutput ? step.rows - 1 : kMostRows;
  for (std::size_t k = 0; k < 4; ++k) {
    const bool is_elsewhere = step.bad == Bad::kOtherDevice && k == static_cast<std::size_t>(step.rows % 4);
    void* const data = is_elsewhere ? elsewhere_->data : made.buffers[k]->data;
    made.tensors[k] = from_blob(
        data, {k < 2 ? step.rows : most_rows, kColumns},
        step.bad == Bad::kDtype && k == 1 ? executorch::aten::ScalarType::Int : executorch::aten::ScalarType::Float);
    values.emplace_back(*made.tensors[k]);
  }
  std::vector<Delegate::EValue*> args;
  for (Delegate::EValue& value : values) args.push_back(&value);
  if (step.bad == Bad::kTooFew) {
    args.pop_back();
  }
  std::optional<CudaStreamGuard> stream;
  if (step.stream != kNoStream) stream.emplace(handle_of(step.stream));
  const auto run = [&] { return slot.delegate->execute(args, step.traced ? tracer_.get() : nullptr); };
  if (step.traced && !tracer_) {
    tracer_ = std::make_unique<DelegateMetadata>();
  }
  if (step.request == kAutomatic) {
    const auto guard = OptimizationProfileGuard::automatic();
    return run();
  }
  if (step.request >= 0) {
    const OptimizationProfileGuard guard(step.request);
    return run();
  }
  return run();
}

void DeviceWorld::call(const Call& step) {
  Slot& slot = slots_[static_cast<std::size_t>(step.slot)];
  std::optional<Made> made = make(step);
  if (!made) {
    return;
  }
  if (made->profile >= 0) {
    order_all(slot, made->buffers, {made->queue, slot.number, slot.state.get()});
  }
  random_engine_log().enqueued = 0;
  arm(step.fault);
  const Error error = execute(slot, step, *made);
  const bool happened = disarm() || (step.fault.kind == Fault::kNoMemory && error == Error::MemoryAllocationFailed);
  if (error == Error::Ok) {
    succeeded(slot, step, *made);
  } else if (made->profile < 0) {
    if (error != Error::InvalidArgument && !happened) {
      wrong("a bad request is refused with " + number(error));
    }
    if (random_engine_log().enqueued != 0) {
      wrong("a bad request is enqueued");
    }
  } else {
    if (!happened) {
      wrong("a call fails: " + number(error));
    }
    failed(slot, step, *made);
  }
  if (error != Error::Ok && step.bad != Bad::kSmallOutput &&
      (made->tensors[2]->size(0) != kMostRows || made->tensors[3]->size(0) != kMostRows)) {
    wrong("a call that failed leaves outputs of " + std::to_string(made->tensors[2]->size(0)) + " rows");
  }
  (void)take_last_error();
  check_left_alone();
}

void DeviceWorld::succeeded(Slot& slot, const Call& step, Made& made) {
  if (made.profile < 0) {
    wrong("a bad request is served");
  }
  for (const std::size_t output : {2u, 3u}) {
    if (made.tensors[output]->size(0) != step.rows) {
      wrong("an output has " + std::to_string(made.tensors[output]->size(0)) + " rows, wanted " +
            std::to_string(step.rows));
    }
  }
  check_times();
  apply(slot, made.buffers, step.rows, made.profile);
  const auto work = std::make_shared<Work>();
  work->queue = made.queue;
  work->engine = slot.number;
  work->state = slot.state.get();
  if (made.early) {
    note(slot, made.buffers, work);
    mark(work, step.stream);
  } else {
    known_done(*work);
  }
}

// Of the last call that was traced: four works of a millisecond, when it has waited for them. Of the one before: what
// other streams did meanwhile as well.
void DeviceWorld::check_times() const {
  const std::pair<std::string, double> most[] = {{"\"device_ns\":", 4}, {"\"device_ns_of_last_call\":", 1e6}};
  for (const auto& [name, most_ms] : most) {
    const std::size_t at = tracer_ ? tracer_->of_delegate.find(name) : std::string::npos;
    if (at == std::string::npos) {
      continue;
    }
    const double ms = std::stod(tracer_->of_delegate.substr(at + name.size())) / 1e6;
    if (ms < 4 || ms > most_ms) {
      wrong("a call took " + std::to_string(ms) + " ms: " + name);
    }
  }
}

// It has waited for all that it queued itself. What it wrote is nobody's; a state in two blocks is as before.
void DeviceWorld::failed(Slot& slot, const Call& step, Made& made) {
  spoil(*made.buffers[2]);
  spoil(*made.buffers[3]);
  if (slot.loaded.state != StateKind::kInPlace) {
    return;
  }
  if (slot.loaded.shares < 0) {
    unload(step.slot, {});  // nobody can look at it
    return;
  }
  State& state = *slot.state;
  const std::vector<float> before = state.holds;
  std::vector<float> after;
  for (const float value : before) {
    after.push_back(next_state_of(value, made.buffers[0]->holds[0], made.profile, step.slot));
  }
  adopt_state(state, before, after);
}

Error DeviceWorld::captured(Slot& slot, const Call& step, Made& made, Graph& graph) {
  void* const stream = handle_of(step.stream);
  void* captured = nullptr;
  random_engine_log().enqueued = 0;
  if (cudaStreamBeginCapture(stream, 0) != 0) {
    wrong("a capture does not begin");
  }
  arm(step.fault);
  const Error error = execute(slot, step, made);
  const bool happened = disarm();
  const int ended = cudaStreamEndCapture(stream, &captured);
  if (error != Error::Ok && error != Error::InvalidArgument && !happened) {
    wrong("a call in a capture fails: " + number(error));
  }
  if (error == Error::InvalidArgument && !happened && random_engine_log().enqueued != 0) {
    wrong("a call that is refused in a capture is enqueued");
  }
  (void)take_last_error();
  if (ended != 0 && !happened) {
    wrong("a call breaks the capture, with " + std::to_string(ended));
  }
  if (ended != 0) {
    (void)cudaGetLastError();
  }
  if (error == Error::Ok && ended == 0 && cudaGraphInstantiateWithFlags(&graph.exec, captured, 0) != 0) {
    wrong("a captured graph is not instantiated");
  }
  if (captured != nullptr) {
    (void)cudaGraphDestroy(captured);
  }
  return error;
}

// A call like the one that is captured comes before, or not, and once more where that is what a refusal asks for.
void DeviceWorld::capture(const Call& step, int number_of_graph, bool is_prepared) {
  Slot& slot = slots_[static_cast<std::size_t>(step.slot)];
  if (!slot.delegate || expected_profile(slot, step) < 0) {
    return;
  }
  Call before = step;
  before.fault = {};
  if (is_prepared) {
    call(before);
  }
  before.fresh = before.filled = 0;
  Graph& graph = graphs_[static_cast<std::size_t>(number_of_graph)];
  drop(graph);
  Call here = before;
  here.fault = step.fault;
  std::optional<Made> made = make(here);
  Error error = captured(slot, here, *made, graph);
  if (error == Error::InvalidArgument && step.fault.kind == Fault::kNothing && made->early &&
      !(slot.state && slot.state->in_two_blocks) && effective_level(slot) != "layers") {
    check_left_alone();
    call(before);
    error = captured(slot, here, *made, graph);
    if (error != Error::Ok) {
      wrong("a call is refused in a capture, behind one of its kind");
    }
  }
  if (graph.exec != nullptr) {
    known_done({nullptr, slot.number, slot.state.get()});  // the capture has waited
    graph.slot = step.slot;
    graph.number = slot.number;
    graph.rows = step.rows;
    graph.profile = made->profile;
    graph.buffers = made->buffers;
  }
  check_left_alone();
}

void DeviceWorld::launch(int number_of_graph, int stream) {
  Graph& graph = graphs_[static_cast<std::size_t>(number_of_graph)];
  if (graph.exec == nullptr) {
    return;
  }
  Slot& slot = slots_[static_cast<std::size_t>(graph.slot)];
  const auto work = std::make_shared<Work>();
  work->queue = queue_of(stream);
  work->state = slot.state.get();
  order_all(slot, graph.buffers, *work);
  if (on_device([&] { return cudaGraphLaunch(graph.exec, handle_of(stream)); }) != 0) {
    wrong("a graph of the caller's is not launched");
  }
  apply(slot, graph.buffers, graph.rows, graph.profile);
  note(slot, graph.buffers, work);
  mark(work, stream);
  check_left_alone();
}

void DeviceWorld::drop(Graph& graph) {
  if (graph.exec != nullptr && cudaGraphExecDestroy(graph.exec) != 0) {
    wrong("a graph is not destroyed");
  }
  for (const BufferPtr& buffer : graph.buffers) {
    if (buffer.use_count() == 1) wait(*buffer);  // which ends now
  }
  graph = {};
}

// Before the delegate goes: what was launched has to be done, and is launched no more.
void DeviceWorld::drop_graphs_of(int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  for (const Use& use : slot.engine.uses) {
    if (use.work->engine == 0) wait(*use.work);
  }
  for (Graph& graph : graphs_) {
    if (graph.exec != nullptr && graph.slot == number) drop(graph);
  }
}

// What they were recorded with stays where it is only as long as no engine has the state in two blocks.
void DeviceWorld::drop_graphs_of_state(int state) {
  for (Slot& slot : slots_) {
    if (slot.state == states_[static_cast<std::size_t>(state)]) drop_graphs_of(slot.loaded.slot);
  }
}

}  // namespace executorch_tensorrt::testing
