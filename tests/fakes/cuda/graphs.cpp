// Graphs of the fake CUDA runtime: what was queued on a captured stream, to be queued again.
#include <algorithm>

#include "library.h"

using namespace fake_cuda;

namespace {

// Null for what is no graph, or not of this kind.
std::shared_ptr<Graph> find(void* handle, bool executable) {
  for (const auto& graph : state().graphs) {
    if (graph.get() == handle && graph->executable == executable) {
      return graph;
    }
  }
  return nullptr;
}

void* add(std::shared_ptr<Works> works, bool executable) {
  return state().graphs.insert(std::make_shared<Graph>(Graph{std::move(works), executable})).first->get();
}

int destroy(void* handle, bool executable) {
  return state().graphs.erase(find(handle, executable)) == 1 ? kSuccess : kInvalidValue;
}

}  // namespace

extern "C" {

int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return call("StreamCreateWithFlags", std::to_string(flags), [&] {
    const std::string name = "own" + std::to_string(++state().own_streams);
    return *stream = state().streams.create(current_device, name, nullptr), kSuccess;
  });
}
int cudaStreamDestroy(void* handle) {
  return call("StreamDestroy", name_of_stream(handle), [&]() -> int {
    Stream* stream = usable(handle);
    if (stream == nullptr) {
      return kInvalidHandle;
    }
    --state().own_streams;
    stream->destroyed = true;
    return kSuccess;
  });
}
int cudaStreamBeginCapture(void* handle, int mode) {
  return call("StreamBeginCapture", name_of_stream(handle) + " " + std::to_string(mode), [=]() -> int {
    Stream* stream = usable(handle);
    if (stream == nullptr || stream->captured || handle == nullptr) {
      return kInvalidHandle;
    }
    stream->captured = std::make_shared<Works>();
    stream->capturing = 1;
    captured_here = mode != 2 ? stream : nullptr;
    return kSuccess;
  });
}
int cudaStreamEndCapture(void* handle, void** graph) {
  const auto body = [&]() -> int {
    Stream* stream = usable(handle);
    if (stream == nullptr || !stream->captured) {
      return kInvalidHandle;
    }
    const bool is_whole = std::exchange(stream->capturing, 0) == 1;
    captured_here = nullptr;
    const auto works = std::exchange(stream->captured, nullptr);
    *graph = is_whole ? add(works, false) : nullptr;
    return is_whole ? kSuccess : kCaptureUnsupported;
  };
  return call("StreamEndCapture", name_of_stream(handle), body, true);  // also one that fails ends the capture
}
// Not in the log: it asks nothing of the device.
int cudaThreadExchangeStreamCaptureMode(int* mode) { return std::swap(*mode, capture_mode), kSuccess; }
int cudaGraphInstantiateWithFlags(void** exec, void* handle, unsigned long long) {
  return call("GraphInstantiateWithFlags", "", [&]() -> int {
    const auto graph = find(handle, false);
    return graph == nullptr ? kInvalidValue : (*exec = add(graph->works, true), kSuccess);
  });
}
int cudaGraphLaunch(void* handle, void* stream_handle) {
  return call("GraphLaunch", name_of_stream(stream_handle), [&]() -> int {
    const auto graph = find(handle, true);
    Stream* stream = usable(stream_handle);
    if (graph == nullptr || stream == nullptr) {
      return kInvalidHandle;
    }
    for (const auto& work : *graph->works) {
      state().streams.add(stream, work);
    }
    return kSuccess;
  });
}
int cudaGraphExecDestroy(void* handle) {
  return call("GraphExecDestroy", "", [&] { return destroy(handle, true); });
}
int cudaGraphDestroy(void* handle) {
  return call("GraphDestroy", "", [&] { return destroy(handle, false); });
}
}
