#include "delegate/bounded_tracer.h"

#include <atomic>
#include <cstring>

namespace executorch_tensorrt {
namespace {

using executorch::etdump::ETDumpGen;
using executorch::runtime::EventTracer;
using Memory = executorch::etdump::internal::ETDumpStaticAllocator;

// ETDumpGen tells nobody how full its buffer is. Instantiating a template explicitly is where C++ lets a program name
// what is private to others; the package is for one version of ExecuTorch, so the member is there.
const Memory& allocator_of(const ETDumpGen& dump);
template <Memory ETDumpGen::* kMember>
struct Opened {
  friend const Memory& allocator_of(const ETDumpGen& dump) { return dump.*kMember; }
};
template struct Opened<&ETDumpGen::alloc_>;

// The table of virtual functions, which tells the class. Of a class that was compiled with -fno-rtti it says nothing,
// and dynamic_cast would follow a null pointer: the word before the table points to the type, says the Itanium C++ ABI.
const void* const* table_of(const EventTracer& tracer) {
  const void* const* table = nullptr;
  std::memcpy(&table, static_cast<const void*>(&tracer), sizeof(table));
  return table;
}

// What is true of one object of a class is of all, so the last one is kept: asking costs half as much as an event.
bool is_dump(EventTracer& tracer) {
  static thread_local const void* last = nullptr;
  static thread_local bool last_is_dump = false;
  const void* const* const table = table_of(tracer);
  if (last != table) {
    auto* const dump = table[-1] != nullptr ? dynamic_cast<ETDumpGen*>(&tracer) : nullptr;
    last_is_dump = static_cast<EventTracer*>(dump) == &tracer;
    last = table;
  }
  return last_is_dump;
}

const Memory* memory_of(EventTracer& tracer) {
  if (!is_dump(tracer)) {
    return nullptr;
  }
  auto& dump = static_cast<ETDumpGen&>(tracer);
  return dump.is_static_etdump() ? &allocator_of(dump) : nullptr;
}

// What an event takes beside its name and metadata: 60 bytes, 90 if it is the first of its kind, 4 when its block ends.
constexpr std::size_t kEvent = 128;

// The tracer that was last said to have no room.
std::atomic<const void*> told{nullptr};

}  // namespace

bool is_limited(EventTracer& tracer) { return memory_of(tracer) != nullptr; }

BoundedTracer::BoundedTracer(EventTracer& caller) : caller_(caller), memory_(memory_of(caller)) {}

std::size_t BoundedTracer::bytes() const { return memory_ != nullptr ? memory_->out_size : 0; }

std::size_t BoundedTracer::kept() const { return bytes() - bytes() / 4; }

bool BoundedTracer::is_first_to_leave_out() const { return told.exchange(&caller_) != &caller_; }

bool BoundedTracer::admit(std::size_t nbytes, std::size_t kept) {
  if (memory_ == nullptr) {
    return true;
  }
  // The other part of the buffer holds the events of the block that is open, in arrays that double and are not freed:
  // the next two have to fit.
  const bool can_grow = memory_->allocated <= memory_->data_size / 3;
  if (can_grow && memory_->front_left >= kept && memory_->front_left - kept >= nbytes + kEvent) {
    return true;
  }
  if (left_out_++ == 0) {
    bytes_free_ = memory_->front_left;
  }
  return false;
}

SilentTracer::Entry BoundedTracer::start_profiling_delegate(const char* name, IntId index) {
  const std::size_t size = name != nullptr ? std::strlen(name) : 0;
  if (!admit(size, kept())) {
    return entry_of(kNotTaken);
  }
  if (memory_ != nullptr && memory_->front_left > bytes() - bytes() / 8 && told.load() == &caller_) {
    told.store(nullptr);  // another tracer, at the same address
  }
  return caller_.start_profiling_delegate(name, index);
}

// What has begun may go further, so that a call whose layers took all there was is told.
void BoundedTracer::end_profiling_delegate(Entry entry, const void* metadata, std::size_t metadata_size) {
  if (entry.event_id != kNotTaken && admit(metadata_size, bytes() / 2)) {
    caller_.end_profiling_delegate(entry, metadata, metadata_size);
  }
}

void BoundedTracer::log_profiling_delegate(const char* name, IntId index, et_timestamp_t start, et_timestamp_t end,
                                           const void* metadata, std::size_t metadata_size) {
  const std::size_t size = name != nullptr ? std::strlen(name) : 0;
  if (admit(size + metadata_size, kept())) {
    caller_.log_profiling_delegate(name, index, start, end, metadata, metadata_size);
  }
}

}  // namespace executorch_tensorrt
