// A caller of delegates on the fake CUDA, and what its memory and its states must hold.
#pragma once

#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../fakes/cudart.h"
#include "../delegate.h"
#include "../delegate_metadata.h"
#include "executorch_tensorrt/engine_state.h"
#include "random_engine.h"
#include "sequences.h"

namespace executorch_tensorrt::testing {

constexpr int kNumSlots = 3;    // of delegates
constexpr int kNumStates = 2;   // that delegates share
constexpr int kNumGraphs = 2;   // of the caller's
constexpr int kNumStreams = 3;  // that the caller makes
// In place of a stream's number.
constexpr int kDefaultStream = 3, kThreadsStream = 4, kNoStream = 5;
// In place of a profile's index.
constexpr int kDefault = -1, kAutomatic = -2;

// malloc, pinned, device, managed; as cudaMemoryType counts.
constexpr int kNumPlaces = 4;
constexpr int kBuffersOfPlace = 4;

// A failure that is to happen in a step.
struct Fault {
  enum Kind { kNothing, kCuda, kEngine, kNoMemory } kind = kNothing;
  std::string at;  // the CUDA function, or what is asked of the engine
  int position = 0;
  int how = 0;  // CUDA's error, or RandomEngineLog::fail_how
  bool late = false;
  std::string text() const;
};

struct Load {
  int slot = 0;
  StateKind state = StateKind::kNone;
  int shares = -1;  // this state; -1 for one of its own
  bool graphs = false;
  std::string level;
  int request = kDefault;  // of calls without one
  Fault fault;
  std::string text() const;
};

struct Argument {
  int place = 0;
  int index = 0;
};

enum class Bad { kNothing, kOtherDevice, kTooFew, kDtype, kSmallOutput };

struct Call {
  int slot = 0;
  int rows = 1;
  int request = kDefault;
  int stream = kNoStream;
  std::array<Argument, 4> arguments;  // a, b, x, y
  unsigned fresh = 0;                 // bits: those that get memory at a new address before
  unsigned filled = 0;                // bits: those that get new values before, which waits for their last use
  bool traced = false;
  Bad bad = Bad::kNothing;
  Fault fault;
  std::string text() const;
};

class DeviceWorld {
 public:
  explicit DeviceWorld(std::uint32_t seed);
  ~DeviceWorld();
  DeviceWorld(const DeviceWorld&) = delete;
  DeviceWorld& operator=(const DeviceWorld&) = delete;

  // Steps.
  void load(const Load& step);
  void unload(int slot, const Fault& fault);
  void call(const Call& step);
  void capture(const Call& step, int graph, bool is_prepared);
  void launch(int graph, int stream);
  void run(int stream, int count);
  void run_any(int number);  // of all streams that there were
  void synchronize(int stream);
  void make_stream_again(int stream);
  void move(const Argument& argument);
  void set_level(const std::string& level);  // empty to clear
  void read_state(int state);
  void write_state(int state, const Fault& fault);
  void reset_state(int state, const Fault& fault);

  void end();

 private:
  struct State;

  // What is queued, until the test knows that it is done.
  struct Work {
    void* queue = nullptr;
    int engine = 0;  // of a call: the number of its delegate, which orders it; 0 for a launch of the caller's graph
    const State* state = nullptr;
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
  };
  struct Use {
    std::shared_ptr<Work> work;
    bool writes = false;
  };
  // Used by works: what is queued next has to come behind.
  struct Used {
    std::vector<Use> uses;
    bool is_written();
  };

  struct Buffer : Used {
    Buffer(int place, int device, std::string name);
    ~Buffer();
    float* begin() const;
    const int place;
    const std::string name;
    void* data;
    std::vector<float> holds;  // when all that is queued is done
    std::string writer = "nobody";
  };
  using BufferPtr = std::shared_ptr<Buffer>;

  struct State : Used {
    EngineState state;
    std::vector<float> initial;
    std::vector<float> holds;
    bool exists = false;         // some engine has it
    bool in_two_blocks = false;  // of some engine
  };

  struct Slot {
    std::unique_ptr<Delegate> delegate;
    int number = 0;  // of no other delegate
    Load loaded;
    Used engine;
    std::shared_ptr<State> state;
    bool has_state() const { return loaded.state != StateKind::kNone; }
  };

  // A call as it is to be made.
  struct Made {
    std::array<BufferPtr, 4> buffers;
    std::array<executorch::extension::TensorPtr, 4> tensors;
    int profile = -1;  // none: a bad request
    void* queue = nullptr;
    bool early = false;
  };

  struct Graph {
    void* exec = nullptr;
    int slot = 0;
    int number = 0;
    int rows = 0;
    int profile = 0;
    std::array<BufferPtr, 4> buffers;
  };

  // With the delegates' device current.
  template <typename Function>
  auto on_device(Function&& function) const {
    fake_cuda_make_current(device_);
    const auto result = function();
    fake_cuda_make_current(current_);
    return result;
  }
  void* handle_of(int stream) const;
  void* queue_of(int stream);

  void arm(const Fault& fault);
  bool disarm();  // whether it happened
  void check_left_alone();
  void check_times() const;

  BufferPtr& buffer(const Argument& argument);
  void renew(BufferPtr& buffer);
  void wait(const Work& work);
  void wait(Used& used);
  void order(Used& used, bool writes, const Work& work);
  void order_all(Slot& slot, const std::array<BufferPtr, 4>& buffers, const Work& work);
  void note(Slot& slot, const std::array<BufferPtr, 4>& buffers, std::shared_ptr<Work> work);
  void mark(const std::shared_ptr<Work>& work, int stream);
  void known_done(const Work& as_of);
  void fill(Buffer& buffer);
  void spoil(Buffer& buffer);

  std::optional<Made> make(const Call& step);
  int expected_profile(const Slot& slot, const Call& step) const;
  executorch::runtime::Error execute(Slot& slot, const Call& step, Made& made);
  void succeeded(Slot& slot, const Call& step, Made& made);
  void failed(Slot& slot, const Call& step, Made& made);
  void apply(Slot& slot, const std::array<BufferPtr, 4>& buffers, int rows, int profile);
  void adopt_state(State& state, const std::vector<float>& before, const std::vector<float>& after);
  std::vector<float> read(State& state);
  std::string effective_level(const Slot& slot) const;
  executorch::runtime::Error captured(Slot& slot, const Call& step, Made& made, Graph& graph);
  void drop(Graph& graph);
  void drop_graphs_of(int slot);
  void drop_graphs_of_state(int state);
  void compare();
  [[noreturn]] void wrong(const std::string& what) const;

  const int device_;
  const int current_;
  const int allocations_before_;
  const int objects_before_;
  Draw draw_;
  std::array<void*, kNumStreams> streams_{};
  std::vector<void*> queues_;  // all that there were
  std::map<std::pair<int, int>, BufferPtr> buffers_;
  BufferPtr elsewhere_;  // on the other device
  std::array<std::shared_ptr<State>, kNumStates> states_;
  std::array<Slot, kNumSlots> slots_;
  std::array<Graph, kNumGraphs> graphs_;
  std::vector<std::weak_ptr<Work>> works_;
  std::unique_ptr<DelegateMetadata> tracer_;
  std::string process_wide_;  // level; empty: none
  float next_value_ = 1;
  int next_number_ = 1;
};

std::vector<Step<DeviceWorld>> draw_device_steps(Draw& draw);

}  // namespace executorch_tensorrt::testing
