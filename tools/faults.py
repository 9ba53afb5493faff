"""Faults that tests have to find: each is a text of the code that is there once, and what to put in its place.

Those of the review of 2026-11-30 have its number; the code was built anew since, so they are in today's form.
`put_faults_back.py` puts them back, each alone. A test holds the texts to the code.
"""

from __future__ import annotations

from dataclasses import dataclass

DEVICE = "device"
"""etrt_random_tests --kind device: delegates over the fake CUDA."""
THREADS = "cpu_threads"
"""etrt_random_tests --kind cpu_threads: delegates of the CPU engine."""
MODULE = "module"
"""tests/sequences: Module over the fake CUDA."""
STOCK_THREADS = "runtime/test_device_state.py::test_methods_of_the_stock_runtime_that_share_a_state_run_in_threads"
PACKAGE_THREADS = "runtime/test_device_package.py::test_thread_that_waits_for_an_engine_lets_others_have_the_gil"


@dataclass(frozen=True)
class Change:
    file: str
    """In native/."""
    text: str
    instead: str


@dataclass(frozen=True)
class Fault:
    name: str
    changes: tuple[Change, ...]
    kinds: tuple[str, ...] = (DEVICE,)
    """Of sequences that find it; or a test of pytest's."""
    review: str = ""
    unseen: str = ""
    """Why no sequence can find it."""


def one(name: str, file: str, text: str, instead: str, *kinds: str, review: str = "", unseen: str = "") -> Fault:
    return Fault(name, (Change(file, text, instead),), kinds or (DEVICE,), review, unseen)


CALLS = "delegate/engine_calls.cpp"
HANDLE = "delegate/engine_handle.cpp"
IO = "delegate/call_io.cpp"
CONTEXTS = "delegate/contexts.cpp"
STATE = "delegate/engine_state.cpp"
CALL = "device/device_call.cpp"
CALL_H = "device/device_call.h"
ORDER = "device/stream_order.cpp"
ORDER_H = "device/stream_order.h"
ORDER_H = "device/stream_order.h"
CUDA_H = "device/cuda.h"
GRAPHS = "device/graph_cache.cpp"
GRAPHS_H = "device/graph_cache.h"
MEMORY = "device/device_memory.cpp"
STATE_MEMORY = "device/state_memory.cpp"
VALUES = "program/method_values.cpp"
ARRAY = "bindings/device_array.cpp"
PYTHON_ENGINE = "bindings/python_engine.cpp"

REVIEWED = (
    one(
        "output shapes are those of a graph that makes place",
        GRAPHS,
        "    make_place();\n    graphs_.push_back({key, std::move(output_shapes), exec, ++launches_});",
        """    const std::vector<Shape>* shapes = &output_shapes;
    for (const Graph& other : graphs_) {
      if (other.key.profile == key.profile && other.key.input_shapes == key.input_shapes) {
        shapes = &other.output_shapes;
        break;
      }
    }
    make_place();
    graphs_.push_back({key, *shapes, exec, ++launches_});""",
        review="B1",
    ),
    Fault(
        "the event that orders calls comes before the copies of outputs",
        (
            Change(
                CALL,
                "Status DeviceCall::copy_back() {",
                """Status DeviceCall::copy_back() {
  if (!stream_.is_captured && stream_.is_named && !uses_host_memory_) {
    (void)work_->end_->record(stream_.handle);
  }""",
            ),
            Change(
                CALL,
                "  if (Status status = work_->end_->record(stream_.handle); !status.ok()) {\n"
                "    return status;  // what is queued is waited for when this ends\n  }\n",
                "",
            ),
        ),
        review="B2",
    ),
    one(
        "a graph's key is without the activation memory",
        CALLS,
        "    graph_key_.addresses.push_back(contexts_->activation_memory().data);\n",
        "",
        review="B3",
    ),
    one(
        "a staged input is not behind the call that reads the one before",
        VALUES,
        "  if (Status status = last_.put_before(stream_); !status.ok()) {",
        "  if (Status status; !status.ok()) {",
        MODULE,
        review="B4",
    ),
    one(
        "the engine's lock is waited for with the GIL",
        HANDLE,
        "const std::unique_lock<std::mutex> lock = locked(mutex_, yields_);",
        "const std::unique_lock<std::mutex> lock(mutex_);",
        PACKAGE_THREADS,
        review="B5",
    ),
    one(
        "the state's lock is waited for with the GIL",
        HANDLE,
        "buffers_lock = locked(buffers_->mutex, yields_);",
        "buffers_lock = std::unique_lock<std::mutex>(buffers_->mutex);",
        STOCK_THREADS,
        review="B5",
    ),
    one(
        "KeyboardInterrupt in an engine's Python is swallowed",
        PYTHON_ENGINE,
        "      InterruptionScope::keep_current_exception();\n",
        "",
        MODULE,
        review="B6",
    ),
    Fault(
        "the end of the timed work is recorded behind the copies and the capture",
        (
            Change(
                CALL_H,
                "    if (status.ok() && is_timed) {\n      work_->mark(1, stream_.handle);\n    }\n",
                "",
            ),
            Change(
                CALL,
                "  if (!stream_.is_named || uses_host_memory_) {\n    return drain();",
                "  if (work_->timed_[0]) {\n    work_->mark(1, stream_.handle);\n  }\n"
                "  if (!stream_.is_named || uses_host_memory_) {\n    return drain();",
            ),
        ),
        review="B8",
    ),
    one(
        "activation memory counts as set although the engine refused it",
        CONTEXTS,
        "  activation_memory_ = nullptr;\n",
        "  activation_memory_ = memory.data;\n",
        review="B10",
    ),
    one(
        "a context ends before its graphs",
        CALLS,
        "  if (graphs_) {\n    graphs_->forget(profile);\n  }\n  contexts_->end(profile);",
        "  contexts_->end(profile);\n  if (graphs_) {\n    graphs_->forget(profile);\n  }",
        review="B19",
    ),
    one(
        "a call that fails leaves its outputs' shapes",
        "delegate/resized_outputs.h",
        "(void)resize_tensor(entry->first, entry->second);",
        "(void)entry;",
        review="N1",
    ),
    one(
        "a call whose layers can't be taken leaves its outputs' shapes",
        CALLS,
        "  call.returned_early = call.device && call.device->returned_early();",
        "  call.io.keep_shapes();\n  call.returned_early = call.device && call.device->returned_early();",
        review="N1",
    ),
    one(
        "a caller's graph is of a buffer that another engine has at two addresses",
        IO,
        "owned != nullptr && owned->memory->next() != nullptr) {",
        "owned != nullptr && owned->memory->next() != nullptr && !metadata_.record->state.empty() &&\n"
        "        metadata_.record->state.front().output) {",
        review="N2",
    ),
)

ORDER_AND_WAITS = (
    one(
        "a call is not ordered behind the one before",
        CALL,
        "  if (Status status = work.order_->last.put_before(stream); !status.ok()) {",
        "  if (Status status; !status.ok()) {",
    ),
    one(
        "a call that is captured does not wait for the one before",
        ORDER_H,
        "    if (call.is_captured) {\n      return wait();",
        "    if (call.is_captured) {\n      return {};",
    ),
    one(
        "a wait breaks the capture of its thread",
        ORDER_H,
        "    const OutsideCaptures outside(cuda_);\n    return cuda_.check(cuda_.EventSynchronize",
        "    return cuda_.check(cuda_.EventSynchronize",
    ),
    one(
        "calls are not told to those that share their state",
        HANDLE,
        "    calls_.device()->share(shared->order);\n",
        "",
    ),
    one(
        "a call that returns early is told to its own engine alone",
        CALL,
        "  work_->order_->last = work_->last_ = {work_->end_, stream_.id};",
        "  work_->last_ = {work_->end_, stream_.id};",
    ),
    one(
        "a call that returns early is not its engine's last",
        CALL,
        "  work_->order_->last = work_->last_ = {work_->end_, stream_.id};",
        "  work_->order_->last = {work_->end_, stream_.id};",
    ),
    one(
        "streams are told apart by their handle",
        ORDER,
        "return error == 0 ? StreamId(id) : std::nullopt;",
        "return error == 0 ? StreamId(reinterpret_cast<std::uintptr_t>(stream)) : std::nullopt;",
        DEVICE,
        MODULE,
    ),
    one(
        "a call that is captured records events",
        CALL,
        "Status DeviceCall::finish() {\n  if (stream_.is_captured) {\n    return {};\n  }\n",
        "Status DeviceCall::finish() {\n",
    ),
    one(
        "a call that is captured is timed",
        "delegate/engine_calls.h",
        "device && !stream.is_captured && at(",
        "device && at(",
    ),
    one("the work of a call that failed is not waited for", CALL_H, "~DeviceCall() { wait(); }", "~DeviceCall() {}"),
    one(
        "a context that failed ends before its work",
        CALLS,
        "    if (call_.device) {\n      call_.device->wait();\n    }\n",
        "",
    ),
    one("a failed capture ends the context before its work", CALLS, "  call.device->wait();  // before", "  // before"),
    one(
        "an engine ends before its work",
        CALLS,
        "  (void)device_->wait();\n  graphs_.reset();",
        "  graphs_.reset();",
    ),
    one(
        "contexts end with another level before their work",
        CALLS,
        "  if (device_) {\n    (void)device_->wait();\n  }\n",
        "",
    ),
    one(
        "a call on host inputs returns before they are copied",
        CALL,
        "    uses_host_memory_ = true;\n    staged_bytes_ += nbytes;",
        "    staged_bytes_ += nbytes;",
    ),
    one(
        "a call on host outputs returns before they are there",
        CALL,
        "  uses_host_memory_ = true;\n  staged_bytes_ += nbytes;\n  Copy",
        "  staged_bytes_ += nbytes;\n  Copy",
    ),
    Fault(
        "outputs are copied before the engine's work",
        (
            Change(
                CALL_H,
                "    queued_ = !stream_.is_captured;\n",
                "    if (Status early = copy_back(); !early.ok()) {\n      return early;\n    }\n"
                "    queued_ = !stream_.is_captured;\n",
            ),
            Change(IO, "  return device ? device->copy_back() : Status();", "  return {};"),
        ),
    ),
    one(
        "outputs leave pinned memory before the stream is waited for",
        CALL,
        '  Status status = cuda_.check(cuda_.StreamSynchronize(stream_.handle), "running the engine");',
        """  for (const Copy& copy : work_->copies_) {
    if (copy.through != nullptr && !copy.to.narrowed) {
      std::memcpy(copy.to.data, copy.through, copy.to.nbytes);
    }
  }
  Status status = cuda_.check(cuda_.StreamSynchronize(stream_.handle), "running the engine");
  for (Copy& copy : work_->copies_) {
    copy.through = copy.to.narrowed ? copy.through : nullptr;
  }""",
    ),
    one(
        "times and layers of a call are taken before it is done",
        CALLS,
        "  if (!device_->is_done()) {\n    return times;\n  }\n",
        "",
    ),
    one(
        "a state is read and written before the calls that use it are done",
        STATE_MEMORY,
        "  if (Status status = order_->last.wait(); !status.ok() || nbytes_ == 0) {",
        "  if (Status status; !status.ok() || nbytes_ == 0) {",
    ),
    one(
        "a state's copy is not waited for",
        STATE_MEMORY,
        "  const int synchronized = cuda_.StreamSynchronize(stream);",
        "  const int synchronized = 0;",
    ),
)

MEMORY_AND_CONTEXTS = (
    one(
        "staging memory grows without waiting for what uses it",
        CALL,
        "  if (Status status = work_->wait(); !status.ok()) {\n    return status;\n  }\n  return place.staging",
        "  return place.staging",
    ),
    one(
        "activation memory grows without waiting for what uses it",
        CALLS,
        "  if (Status status = device_ ? device_->wait() : Status(); !status.ok()) {",
        "  if (Status status; !status.ok()) {",
    ),
    one(
        "activation memory goes that a caller's graph has",
        CONTEXTS,
        "  keeps_activations_ = activations_ != nullptr;\n",
        "",
    ),
    one("a context goes that a caller's graph has", CONTEXTS, "  context.is_captured_ = true;\n", ""),
    one(
        "a context is used with activation memory that is gone",
        CONTEXTS,
        "return context != nullptr && context->activation_memory_ == activation_memory().data ? context : nullptr;",
        "return context;",
    ),
    one(
        "a context that got other activation memory counts as used with it",
        CONTEXTS,
        "  has_run_ = false;\n  activation_memory_ = nullptr;",
        "  activation_memory_ = nullptr;",
    ),
    one(
        "a context of other shapes counts as used with them",
        CONTEXTS,
        "    is_inferred_ = has_run_ = false;",
        "    is_inferred_ = false;",
    ),
    one(
        "a call gets another profile's context",
        CALLS,
        "contexts_->find(call.profile);\n  if (call",
        "contexts_->find(0);\n  if (call",
    ),
    one(
        "output shapes stay those of other input shapes",
        CONTEXTS,
        "    is_inferred_ = has_run_ = false;",
        "    has_run_ = false;",
    ),
    one(
        "an input's address counts as set although the engine refused it",
        CONTEXTS,
        "  input_addresses_[input] = nullptr;\n",
        "  input_addresses_[input] = data;\n",
    ),
    one(
        "an output's address counts as set although the engine refused it",
        CONTEXTS,
        "  out.is_set = false;\n",
        "  out = {data, nbytes, true};\n",
    ),
    one(
        "outputs keep an address of theirs",
        CONTEXTS,
        "if (out.is_set && out.data == data && out.nbytes",
        "if (out.is_set && out.nbytes",
    ),
    one(
        "a graph's key is without the profile",
        GRAPHS_H,
        "return a.profile == b.profile && a.addresses",
        "return a.addresses",
    ),
    one("a graph's key is without the shapes", GRAPHS_H, " && a.input_shapes == b.input_shapes;", ";"),
    one(
        "a graph's key is without the addresses",
        GRAPHS_H,
        "a.profile == b.profile && a.addresses == b.addresses &&",
        "a.profile == b.profile &&",
    ),
    one(
        "graphs stay when contexts end with another level",
        CALLS,
        "    graphs_->forget_all();\n  }\n  contexts_->collect",
        "  }\n  contexts_->collect",
    ),
    one("graphs stay when their context ends", CALLS, "    graphs_->forget(profile);\n", ""),
    one("a graph that makes place stays alive", GRAPHS, "  destroy(*oldest);\n", ""),
    one(
        "an exception leaves a capture open",
        GRAPHS,
        "without_exceptions([&] { return enqueue(stream_); });",
        "enqueue(stream_);",
    ),
    one("a call after one refused in a capture is replayed", CALLS, "    enqueue_next_ = true;\n", ""),
    one(
        "an output on memory that stays is not brought to the caller's",
        CALL,
        "  work_->copies_.push_back({{data, nbytes, true, false}, &place, true});\n",
        "",
    ),
    one(
        "an input is not brought to the memory that stays",
        CALL,
        "if (nbytes == 0 || place.address == place.staging.data()) {\n    return place.address;",
        "if (nbytes == 0 || place.address == place.staging.data() || place.staging.size() >= nbytes) {\n"
        "    return place.address = nbytes == 0 ? place.address : place.staging.data();",
    ),
    one(
        "a state moves on although the call failed",
        HANDLE,
        "  if (status.ok()) {\n    calls_.advance",
        "  {\n    calls_.advance",
    ),
    one(
        "a state's next value is its value",
        IO,
        "return Memory{owned->memory->next(), owned->nbytes, false};",
        "return Memory{owned->memory->value(), owned->nbytes, false};",
    ),
    one(
        "the caller's device is not made current again",
        CUDA_H,
        "      cuda_.ignore(cuda_.SetDevice(before_));",
        "      (void)before_;",
    ),
    one(
        "an error that is of no harm stays",
        CUDA_H,
        "    if (error != 0) {\n      GetLastError();\n    }",
        "    (void)error;",
    ),
    one("an error that is told stays", "device/cuda.cpp", "what) const {\n  GetLastError();\n", "what) const {\n"),
    one(
        "two calls of an engine at once",
        HANDLE,
        "const std::unique_lock<std::mutex> lock = locked(mutex_, yields_);",
        "",
        THREADS,
        unseen="engines of this kind share a state, whose lock holds them apart as well",
    ),
    one(
        "two calls of one state at once", HANDLE, "    buffers_lock = locked(buffers_->mutex, yields_);\n", "", THREADS
    ),
    one(
        "a state is read while a call writes it",
        STATE,
        "  {\n    const std::unique_lock<std::mutex> lock = locked(buffers.mutex);\n    const Result",
        "  {\n    const Result",
        THREADS,
        unseen="it takes some nanoseconds: for ThreadSanitizer",
    ),
    one(
        "memory that was freed is known to lie where it was",
        MEMORY,
        "  forget_memory(data_);\n",
        "",
    ),
)

OF_MODULES = (
    Fault(
        "an output's event comes before its call",
        (
            Change(VALUES, "    status = mark(last_);\n", ""),
            Change(
                VALUES,
                "  for (std::size_t o = 0; o < outputs_.size(); ++o) {\n    if (Status status = outputs_[o].is_on",
                "  if (stream_.is_named && !stream_.is_captured) {\n    (void)mark(last_);\n  }\n"
                "  for (std::size_t o = 0; o < outputs_.size(); ++o) {\n    if (Status status = outputs_[o].is_on",
            ),
        ),
        (MODULE,),
    ),
    one(
        "a call is not behind the one that its input comes from",
        VALUES,
        "    if (Status status = source.ready.put_before(stream_); !status.ok()) {",
        "    if (Status status; !status.ok()) {",
        MODULE,
    ),
    one(
        "a call is no reader of its input's memory",
        VALUES,
        "      source.block->add_reader(ready_);\n",
        "",
        MODULE,
        unseen="sequences keep inputs of other methods until they are read, while a pool that ends waits for none",
    ),
    one(
        "pinned memory is used again before its copy is done",
        VALUES,
        "    Status status = copied_.wait();  //",
        "    Status status;  //",
        MODULE,
    ),
    one(
        "memory of a staged input grows while a call reads it",
        VALUES,
        "    status = last_.wait();\n",
        "",
        MODULE,
    ),
    one(
        "a method's memory goes before the call that reads it is done",
        VALUES,
        "  (void)last_.wait();  //",
        "  //",
        MODULE,
    ),
    one(
        "the work of a method that failed is not waited for",
        VALUES,
        "    cuda_->ignore(cuda_->StreamSynchronize(stream_.handle));\n",
        "",
        MODULE,
    ),
    one(
        "numpy() does not wait for the call",
        ARRAY,
        '"copying an array from the device", array.output.ready);',
        '"copying an array from the device");',
        MODULE,
    ),
    one(
        "__dlpack__ gives no order",
        ARRAY,
        "    return ready.end ? ready.end->put_before(stream) : Status();",
        "    return Status();",
        MODULE,
    ),
    one("__cuda_array_interface__ does not wait", ARRAY, "  wait_for(array);\n", "", MODULE),
    one(
        "memory that another stream uses is not waited for",
        ARRAY,
        "    array.output.block->used_on(stream);\n",
        "",
        MODULE,
        unseen="only work that a caller queues himself would show it, and sequences queue none on outputs",
    ),
    Fault(
        "memory is given to calls of another stream without order",
        (
            Change(MEMORY, "return block->stream_.is_same(stream); });", "return block != nullptr; });"),
            Change(MEMORY, "} else if (!block->stream_.is_same(stream)) {", "} else if (block == nullptr) {"),
        ),
        (MODULE,),
        unseen="only work that a caller queues himself would show it, and sequences queue none on outputs",
    ),
    one(
        "memory that readers use is given out at once",
        MEMORY,
        "    if (Status status = reader.put_before(stream); !status.ok()) {",
        "    if (Status status; !status.ok()) {",
        MODULE,
    ),
    one(
        "an output's memory is not its own",
        VALUES,
        "  output.block = std::move(*block);",
        "  output.block.reset((*block).get(), [](auto*) {});",
        MODULE,
    ),
    one(
        "int64 on the device is narrowed to its high halves",
        CALL,
        "kNarrow, memory.data, kWide,",
        "kNarrow, static_cast<const char*>(memory.data) + kNarrow, kWide,",
        MODULE,
    ),
    one(
        "int64 is copied as if it were int32",
        CALL_H,
        "return narrowed ? nbytes / 2 : nbytes;",
        "return nbytes;",
        MODULE,
        unseen="only staging memory gets larger, and the size that the engine is told",
    ),
)

FAULTS = (*REVIEWED, *ORDER_AND_WAITS, *MEMORY_AND_CONTEXTS, *OF_MODULES)
