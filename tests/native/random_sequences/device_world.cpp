// What holds of the caller's memory, states and streams.
#include "device_world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "executorch_tensorrt/last_error.h"
#include "executorch_tensorrt/profiling_control.h"

extern "C" {
int cudaGetLastError();
int cudaStreamSynchronize(void* stream);
int cudaGraphExecDestroy(void* exec);
}

namespace executorch_tensorrt::testing {

using executorch::runtime::Error;

namespace {

constexpr int kFloats = (kMostRows + 4) * kColumns;
constexpr int kOtherDevice[] = {1, 0};
constexpr int kAll = 1 << 30;
constexpr float kNothingWritten = -1.0f;
constexpr const char* kPlaceNames[] = {"malloc", "pinned", "device", "managed"};

}  // namespace

DeviceWorld::Buffer::Buffer(int where, int device, std::string called)
    : place(where),
      name(std::move(called)),
      data(where == 0 ? std::malloc(kFloats * sizeof(float))
                      : fake_cuda_allocate(kFloats * sizeof(float), where, device)),
      holds(kFloats, kNothingWritten) {
  std::copy(holds.begin(), holds.end(), begin());
}

DeviceWorld::Buffer::~Buffer() { place == 0 ? std::free(data) : fake_cuda_free(data); }

float* DeviceWorld::Buffer::begin() const { return static_cast<float*>(fake_cuda_at(data, kFloats * sizeof(float))); }

bool DeviceWorld::Used::is_written() {
  uses.erase(std::remove_if(uses.begin(), uses.end(), [](const Use& use) { return *use.work->done; }), uses.end());
  return std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.writes; });
}

DeviceWorld::DeviceWorld(std::uint32_t seed)
    : device_(static_cast<int>(seed % 3 == 0)),
      current_(static_cast<int>(seed % 5 == 0)),
      allocations_before_((fake_cuda_reset(2), fake_cuda_allocations())),
      objects_before_(fake_cuda_objects()),
      draw_(~seed) {
  random_engine_log() = {};
  register_random_engine(device_);
  clear_profiling();
  for (void*& stream : streams_) {
    stream = fake_cuda_stream_create(device_);
  }
  for (int stream = 0; stream < kNoStream; ++stream) {
    queue_of(stream);
  }
  elsewhere_ = std::make_shared<Buffer>(2, kOtherDevice[device_], "memory on the other device");
  for (int k = 0; k < kNumStates; ++k) {
    states_[k] = std::make_shared<State>();
    states_[k]->initial = k == 0 ? std::vector<float>(kStateSize, 0.0f) : std::vector<float>{5.0f, 7.0f};
    states_[k]->holds = states_[k]->initial;
  }
  fake_cuda_make_current(current_);
}

DeviceWorld::~DeviceWorld() = default;

void DeviceWorld::wrong(const std::string& what) const { throw Wrong(what); }

void* DeviceWorld::handle_of(int stream) const {
  if (stream < kNumStreams) {
    return streams_[static_cast<std::size_t>(stream)];
  }
  return stream == kDefaultStream ? nullptr : reinterpret_cast<void*>(2);
}

void* DeviceWorld::queue_of(int stream) {
  void* const queue = on_device([&] { return fake_cuda_queue_of(handle_of(stream)); });
  if (std::find(queues_.begin(), queues_.end(), queue) == queues_.end()) {
    queues_.push_back(queue);
  }
  return queue;
}

DeviceWorld::BufferPtr& DeviceWorld::buffer(const Argument& argument) {
  BufferPtr& found = buffers_[{argument.place, argument.index}];
  if (!found) {
    const std::string name = kPlaceNames[argument.place] + std::string(" memory ") + std::to_string(argument.index);
    found = std::make_shared<Buffer>(argument.place, device_, name);
  }
  return found;
}

// What is in the caller's graphs stays where it is, for them.
void DeviceWorld::renew(BufferPtr& buffer) {
  wait(*buffer);
  buffer = std::make_shared<Buffer>(buffer->place, device_, buffer->name);
}

// As a caller waits for an event of his own behind the work.
void DeviceWorld::wait(const Work& work) {
  while (!*work.done) {
    if (fake_cuda_run_some(work.queue, 1) == 0) {
      wrong("a stream came to its end before what the test put on it");
    }
  }
}

void DeviceWorld::wait(Used& used) {
  for (const Use& use : used.uses) {
    wait(*use.work);
  }
  used.uses.clear();
}

// Waits for what nobody else orders: neither a stream, nor the delegate, nor the state of several.
void DeviceWorld::order(Used& used, bool writes, const Work& work) {
  for (const Use& use : used.uses) {
    const Work& earlier = *use.work;
    const bool both_are_calls = earlier.engine != 0 && work.engine != 0;
    const bool by_delegate =
        both_are_calls && (earlier.engine == work.engine || (earlier.state != nullptr && earlier.state == work.state));
    if ((writes || use.writes) && earlier.queue != work.queue && !by_delegate) {
      wait(earlier);
    }
  }
}

void DeviceWorld::order_all(Slot& slot, const std::array<BufferPtr, 4>& buffers, const Work& work) {
  order(slot.engine, true, work);
  if (slot.has_state()) {
    order(*slot.state, true, work);
  }
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    order(*buffers[k], k >= 2, work);
  }
}

void DeviceWorld::note(Slot& slot, const std::array<BufferPtr, 4>& buffers, std::shared_ptr<Work> work) {
  slot.engine.uses.push_back({work, true});
  if (slot.has_state()) {
    slot.state->uses.push_back({work, true});
  }
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    buffers[k]->uses.push_back({work, k >= 2});
  }
  works_.push_back(work);
}

// As a caller records an event behind what he has queued.
void DeviceWorld::mark(const std::shared_ptr<Work>& work, int stream) {
  using Done = std::shared_ptr<bool>;
  const auto run = [](void* done) { **static_cast<Done*>(done) = true; };
  const auto release = [](void* done) { delete static_cast<Done*>(done); };
  on_device([&] { return fake_cuda_enqueue(handle_of(stream), run, new Done(work->done), release), 0; });
}

// A call that waited has done so for all that it was ordered behind.
void DeviceWorld::known_done(const Work& as_of) {
  for (const std::weak_ptr<Work>& one : works_) {
    const std::shared_ptr<Work> work = one.lock();
    if (work && ((as_of.queue != nullptr && work->queue == as_of.queue) ||
                 (work->engine != 0 && as_of.engine != 0 && work->engine == as_of.engine) ||
                 (work->engine != 0 && as_of.state != nullptr && work->state == as_of.state))) {
      *work->done = true;
    }
  }
}

void DeviceWorld::fill(Buffer& buffer) {
  wait(buffer);
  next_value_ += 1;
  for (int k = 0; k < kFloats; ++k) {
    buffer.holds[static_cast<std::size_t>(k)] = next_value_ + static_cast<float>(k * 100);
  }
  std::copy(buffer.holds.begin(), buffer.holds.end(), buffer.begin());
  buffer.writer = "the caller";
}

// What nobody knows of, the caller writes over.
void DeviceWorld::spoil(Buffer& buffer) {
  wait(buffer);
  std::fill(buffer.holds.begin(), buffer.holds.end(), kNothingWritten);
  std::copy(buffer.holds.begin(), buffer.holds.end(), buffer.begin());
  buffer.writer = "the caller";
}

void DeviceWorld::apply(Slot& slot, const std::array<BufferPtr, 4>& buffers, int rows, int profile) {
  const int engine = slot.loaded.slot;
  const auto& [a, b, x, y] = buffers;
  const std::vector<float> state = slot.has_state() ? slot.state->holds : std::vector<float>(kStateSize, 0.0f);
  for (int k = 0; k < rows * kColumns; ++k) {
    const auto at = static_cast<std::size_t>(k);
    x->holds[at] = x_of(a->holds[at], b->holds[at], profile, engine);
    y->holds[at] = y_of(b->holds[at], state[at % kStateSize], profile, engine);
  }
  if (slot.has_state()) {
    for (std::size_t k = 0; k < kStateSize; ++k) {
      slot.state->holds[k] = next_state_of(state[k], a->holds[0], profile, engine);
    }
  }
  x->writer = y->writer = "a call of delegate " + std::to_string(engine) + ", " + std::to_string(rows) + " rows";
}

void DeviceWorld::compare() {
  std::vector<Buffer*> all = {elsewhere_.get()};
  for (const auto& entry : buffers_) all.push_back(entry.second.get());
  for (const Graph& graph : graphs_) {
    for (const BufferPtr& buffer : graph.buffers) {
      if (buffer) all.push_back(buffer.get());
    }
  }
  for (Buffer* buffer : all) {
    const float* const found = buffer->begin();
    if (buffer->is_written() || std::equal(buffer->holds.begin(), buffer->holds.end(), found)) {
      continue;
    }
    std::string text = buffer->name + ", last written by " + buffer->writer + ":";
    for (int k = 0, shown = 0; k < kFloats && shown < 4; ++k) {
      const float wanted = buffer->holds[static_cast<std::size_t>(k)];
      if (found[k] != wanted) {
        text += " element " + std::to_string(k) + ": got " + std::to_string(found[k]) + ", wanted " +
                std::to_string(wanted) + ";";
        ++shown;
      }
    }
    wrong(text);
  }
}

void DeviceWorld::arm(const Fault& fault) {
  random_engine_log().failed = false;
  if (fault.kind == Fault::kCuda) {
    fake_cuda_fail(fault.at.c_str(), fault.position, fault.how, fault.late ? 1 : 0);
  } else if (fault.kind == Fault::kEngine) {
    RandomEngineLog& log = random_engine_log();
    log.fail_at = fault.at;
    log.fail_after = fault.position;
    log.fail_how = fault.how;
  } else if (fault.kind == Fault::kNoMemory) {
    fake_cuda_set_free_memory(static_cast<std::size_t>(fault.position));
  }
}

bool DeviceWorld::disarm() {
  const bool happened = fake_cuda_failed() != 0 || random_engine_log().failed;
  fake_cuda_fail("", 0, 0, 0);
  fake_cuda_set_free_memory(std::size_t{1} << 30);
  random_engine_log().fail_at.clear();
  return happened;
}

// What no step may leave behind.
void DeviceWorld::check_left_alone() {
  if (!random_engine_log().misused.empty()) {
    wrong("the engine is misused: " + random_engine_log().misused);
  }
  if (fake_cuda_last_error() != 0) {
    wrong("CUDA keeps error " + std::to_string(fake_cuda_last_error()) + " for the thread");
  }
  if (fake_cuda_current_device() != current_) {
    wrong("device " + std::to_string(fake_cuda_current_device()) + " is current, wanted " + std::to_string(current_));
  }
  compare();
}

void DeviceWorld::run(int stream, int count) {
  fake_cuda_run_some(queue_of(stream), count);
  check_left_alone();
}

void DeviceWorld::run_any(int number) {
  fake_cuda_run_some(queues_[static_cast<std::size_t>(number) % queues_.size()], kAll);
  check_left_alone();
}

void DeviceWorld::synchronize(int stream) {
  if (on_device([&] { return cudaStreamSynchronize(handle_of(stream)); }) != 0) {
    wrong("a stream cannot be waited for");
  }
  known_done({queue_of(stream), 0, nullptr});
  check_left_alone();
}

void DeviceWorld::make_stream_again(int stream) {
  void*& handle = streams_[static_cast<std::size_t>(stream)];
  fake_cuda_stream_destroy(handle);
  handle = on_device([&] { return fake_cuda_stream_create_again(handle); });
  queue_of(stream);
}

void DeviceWorld::move(const Argument& argument) { renew(buffer(argument)); }

void DeviceWorld::set_level(const std::string& level) {
  process_wide_ = level;
  if (level.empty()) {
    clear_profiling();
  } else if (set_profiling(level) != Error::Ok) {
    wrong("level '" + level + "' is refused: " + take_last_error());
  }
}

std::string DeviceWorld::effective_level(const Slot& slot) const {
  return process_wide_.empty() ? slot.loaded.level : process_wide_;
}

std::vector<float> DeviceWorld::read(State& state) {
  for (const Use& use : state.uses) {
    if (use.work->engine == 0) wait(*use.work);  // of the caller's graph: nobody else waits for it
  }
  std::vector<float> floats(kStateSize, kNothingWritten);
  if (state.state.read("kv", floats.data(), kStateSize * sizeof(float)) != Error::Ok) {
    wrong("a state cannot be read: " + take_last_error());
  }
  known_done({nullptr, 0, &state});
  return floats;
}

namespace {

std::string text_of(const std::vector<float>& floats) {
  return std::to_string(floats[0]) + " " + std::to_string(floats[1]);
}

}  // namespace

void DeviceWorld::read_state(int number) {
  State& state = *states_[static_cast<std::size_t>(number)];
  if (!state.exists) {
    float nothing[kStateSize];
    if (state.state.read("kv", nothing, sizeof(nothing)) != Error::InvalidArgument) {
      wrong("a state that no engine has is read");
    }
    (void)take_last_error();
    return;
  }
  const std::vector<float> found = read(state);
  if (found != state.holds) {
    wrong("state " + std::to_string(number) + ": got " + text_of(found) + ", wanted " + text_of(state.holds));
  }
  check_left_alone();
}

// After what failed, a state is as before, or as it should have become.
void DeviceWorld::adopt_state(State& state, const std::vector<float>& before, const std::vector<float>& after) {
  state.holds = read(state);
  if (state.holds != before && state.holds != after) {
    wrong("a state after a failure: got " + text_of(state.holds) + ", wanted " + text_of(before) + " or " +
          text_of(after));
  }
}

void DeviceWorld::write_state(int number, const Fault& fault) {
  State& state = *states_[static_cast<std::size_t>(number)];
  if (!state.exists) {
    return;
  }
  next_value_ += 1;
  const std::vector<float> before = state.holds, after = {next_value_, next_value_ + 1};
  for (const Use& use : state.uses) {
    if (use.work->engine == 0) wait(*use.work);
  }
  arm(fault);
  const Error error = state.state.write("kv", after.data(), kStateSize * sizeof(float));
  const bool happened = disarm();
  if (error == Error::Ok) {
    state.holds = after;
    known_done({nullptr, 0, &state});
  } else if (!happened) {
    wrong("a state cannot be written: " + take_last_error());
  } else {
    adopt_state(state, before, after);
  }
  check_left_alone();
}

void DeviceWorld::reset_state(int number, const Fault& fault) {
  State& state = *states_[static_cast<std::size_t>(number)];
  const std::vector<float> before = state.holds;
  for (const Use& use : state.uses) {
    if (use.work->engine == 0) wait(*use.work);
  }
  arm(fault);
  const Error error = state.state.reset();
  const bool happened = disarm();
  if (error == Error::Ok) {
    state.holds = state.initial;
    if (state.exists) known_done({nullptr, 0, &state});
  } else if (!happened) {
    wrong("a state cannot be reset: " + take_last_error());
  } else {
    adopt_state(state, before, state.initial);
  }
  check_left_alone();
}

void DeviceWorld::end() {
  for (int k = draw_.below(12); k > 0; --k) {
    run(draw_.below(kNoStream), draw_.between(1, 6));
  }
  const bool unload_first = draw_.one_in(3);
  for (int slot = 0; unload_first && slot < kNumSlots; ++slot) {
    unload(slot, {});
  }
  for (std::size_t k = queues_.size(); k > 0; --k) {
    std::swap(queues_[k - 1], queues_[static_cast<std::size_t>(draw_.below(static_cast<int>(k)))]);
    fake_cuda_run_some(queues_[k - 1], kAll);
  }
  check_left_alone();
  for (int state = 0; state < kNumStates; ++state) {
    read_state(state);
  }
  for (int slot = 0; slot < kNumSlots; ++slot) {
    unload(slot, {});
  }
  for (void* queue : queues_) {
    fake_cuda_run_some(queue, kAll);
  }
  check_left_alone();
  states_ = {};
  for (Graph& graph : graphs_) drop(graph);
  buffers_.clear();
  elsewhere_.reset();
  clear_profiling();
  for (void* stream : streams_) fake_cuda_stream_destroy(stream);
  if (fake_cuda_allocations() != allocations_before_ || fake_cuda_objects() != objects_before_) {
    wrong("left behind: " + std::to_string(fake_cuda_allocations() - allocations_before_) + " allocations, " +
          std::to_string(fake_cuda_objects() - objects_before_) + " events, graphs and streams");
  }
}

}  // namespace executorch_tensorrt::testing
