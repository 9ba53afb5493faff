// What the open guards of one kind ask of one thread.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

namespace executorch_tensorrt {

class GuardStack;

// Of one open guard.
struct GuardEntry {
  explicit GuardEntry(GuardStack& owner) : stack(owner) {}

  GuardStack& stack;
  std::atomic<bool> ended{false};  // another thread that sets it does not touch the entry afterwards
};

// Owned by its thread and by the open guards, for a guard may be destroyed when its thread is gone.
class GuardStack {
 public:
  explicit GuardStack(const char* kind) : kind_(kind) {}
  virtual ~GuardStack() = default;
  GuardStack(const GuardStack&) = delete;
  GuardStack& operator=(const GuardStack&) = delete;

  const char* kind() const { return kind_; }

  // A later thread may have the id of one that is gone.
  bool is_of_this_thread() const noexcept { return thread_ == std::this_thread::get_id() && !left_; }

  // Whether the calling thread ends: it destroys its thread_local and, where it is the main one, static objects.
  static bool& thread_ends() noexcept {
    thread_local bool ends = false;
    return ends;
  }

  // On its own thread.
  virtual bool is_innermost(const GuardEntry& entry) noexcept = 0;

  // Takes the entry out, wherever it lies. On another thread it is marked, and goes when its own thread comes by.
  void end(GuardEntry& entry) noexcept {
    const bool is_here = is_of_this_thread();
    entry.ended.store(true, std::memory_order_release);
    if (is_here) {
      drop_ended();
    }
  }

 protected:
  virtual void drop_ended() noexcept = 0;

  // Its thread is not there any more.
  void leave() noexcept { left_ = true; }

 private:
  const char* const kind_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<bool> left_{false};
};

template <typename Value>
class GuardStackOf final : public GuardStack {
 public:
  // `asked` is a thread_local of the calling thread, null without a guard: a pointer, so that reading it needs neither
  // construction nor destruction.
  GuardStackOf(const char* kind, const Value*& asked) : GuardStack(kind), asked_(asked), before_(asked) {}

  // The calling thread begins to ask for `value`.
  static std::shared_ptr<GuardEntry> push(const char* kind, const Value*& asked, Value value) {
    std::shared_ptr<GuardStackOf> stack = of_thread(kind, asked);
    GuardEntry& entry = stack->push(std::move(value));
    return {std::move(stack), &entry};
  }

 private:
  struct Entry : GuardEntry {
    Entry(GuardStack& owner, Value v) : GuardEntry(owner), value(std::move(v)) {}
    const Value value;
  };

  struct Owner {
    Owner(const char* kind, const Value*& asked) : stack(std::make_shared<GuardStackOf>(kind, asked)) {}
    ~Owner() {
      stack->asked_ = nullptr;
      stack->leave();
      thread_ends() = true;
    }
    const std::shared_ptr<GuardStackOf> stack;
  };

  static std::shared_ptr<GuardStackOf> of_thread(const char* kind, const Value*& asked) {
    if (thread_ends()) {  // destructors may still run models: each guard has a stack of its own
      return std::make_shared<GuardStackOf>(kind, asked);
    }
    thread_local const Owner owner(kind, asked);
    return owner.stack;
  }

  GuardEntry& push(Value value) {
    drop_ended();
    Entry& entry = entries_.emplace_back(*this, std::move(value));
    asked_ = &entry.value;
    return entry;
  }

  bool is_innermost(const GuardEntry& entry) noexcept override {
    drop_ended();
    return !entries_.empty() && &entries_.back() == &entry;
  }

  void drop_ended() noexcept override {
    while (!entries_.empty() && entries_.back().ended.load(std::memory_order_acquire)) {
      entries_.pop_back();
    }
    asked_ = entries_.empty() ? before_ : &entries_.back().value;
  }

  const Value*& asked_;
  const Value* const before_;
  std::deque<Entry> entries_;  // innermost last; none moves
};

}  // namespace executorch_tensorrt
