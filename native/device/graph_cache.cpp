#include "device/graph_cache.h"

#include <algorithm>
#include <utility>

#include "core/exceptions.h"

namespace executorch_tensorrt {
namespace {

constexpr unsigned kNonBlocking = 1;
// As many as buffers that take turns.
constexpr int kFewAddresses = 4;
// Other threads may go on allocating memory meanwhile.
constexpr int kThreadLocal = 1;

}  // namespace

Result<std::unique_ptr<GraphCache>> GraphCache::create(const Cuda& cuda) {
  if (!cuda.has_graphs()) {
    return Status(StatusCode::kNotSupported, "this CUDA has no graphs: wanted 11.4 or later");
  }
  std::unique_ptr<GraphCache> cache(new GraphCache(cuda));
  const int error = cuda.StreamCreateWithFlags(&cache->stream_, kNonBlocking);
  if (Status status = cuda.check(error, "making a stream to capture on"); !status.ok()) {
    return status;
  }
  return cache;
}

GraphCache::~GraphCache() {
  forget_all();
  if (stream_ != nullptr) {
    cuda_.ignore(cuda_.StreamDestroy(stream_));
  }
}

bool GraphCache::output_shapes(std::size_t profile, const std::vector<Shape>& input_shapes,
                               std::vector<Shape>& shapes) const {
  for (const Graph& graph : graphs_) {
    if (graph.key.profile == profile && graph.key.input_shapes == input_shapes) {
      shapes = graph.output_shapes;
      return true;
    }
  }
  return false;
}

const GraphCache::Graph* GraphCache::find(const GraphKey& key) const {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(), [&](const Graph& graph) { return graph.key == key; });
  return found != graphs_.end() ? &*found : nullptr;
}

Status GraphCache::launch(const GraphKey& key, CudaStream stream) {
  const Graph* graph = find(key);
  graph->last_launch = ++launches_;
  return cuda_.check(cuda_.GraphLaunch(graph->exec, stream), "launching a CUDA graph");
}

bool GraphCache::seen(const GraphKey& key) {
  if (std::find(last_calls_.begin(), last_calls_.end(), key) != last_calls_.end()) {
    return true;
  }
  if (last_calls_.size() == kMaxGraphs) {
    last_calls_.erase(last_calls_.begin());
  }
  last_calls_.push_back(key);
  return false;
}

void GraphCache::note_addresses(const GraphKey& key, bool are_new) {
  const auto same = std::find_if(moving_.begin(), moving_.end(), [&](const Moving& shapes) {
    return shapes.profile == key.profile && shapes.input_shapes == key.input_shapes;
  });
  if (same != moving_.end()) {
    same->new_addresses = are_new ? same->new_addresses + 1 : 0;
  } else if (are_new) {
    if (moving_.size() == kMaxGraphs) {
      moving_.erase(moving_.begin());
    }
    moving_.push_back({key.profile, key.input_shapes, 1});
  }
}

bool GraphCache::addresses_move(const GraphKey& key) const {
  return std::any_of(moving_.begin(), moving_.end(), [&](const Moving& shapes) {
    return shapes.new_addresses >= kFewAddresses && shapes.profile == key.profile &&
           shapes.input_shapes == key.input_shapes;
  });
}

Status GraphCache::capture(const GraphKey& key, std::vector<Shape> output_shapes,
                           const std::function<Status(CudaStream)>& enqueue) {
  const int error = cuda_.StreamBeginCapture(stream_, kThreadLocal);
  if (Status status = cuda_.check(error, "beginning to capture a CUDA graph"); !status.ok()) {
    return status;
  }
  Status status = without_exceptions([&] { return enqueue(stream_); });  // the capture has to end
  CudaGraph graph = nullptr;
  Status ended = cuda_.check(cuda_.StreamEndCapture(stream_, &graph), "capturing a CUDA graph");
  if (!status.ok() || !ended.ok()) {
    if (graph != nullptr) {
      cuda_.ignore(cuda_.GraphDestroy(graph));
    }
    return status.ok() ? ended : status;
  }
  CudaGraphExec exec = nullptr;
  status = cuda_.check(cuda_.GraphInstantiateWithFlags(&exec, graph, 0), "instantiating a CUDA graph");
  cuda_.ignore(cuda_.GraphDestroy(graph));
  if (status.ok()) {
    make_place();
    graphs_.push_back({key, std::move(output_shapes), exec, ++launches_});
  }
  return status;
}

void GraphCache::make_place() {
  if (graphs_.size() < kMaxGraphs) {
    return;
  }
  const auto oldest = std::min_element(graphs_.begin(), graphs_.end(),
                                       [](const Graph& a, const Graph& b) { return a.last_launch < b.last_launch; });
  destroy(*oldest);
  graphs_.erase(oldest);
}

// CUDA frees one that is at work when that is done.
void GraphCache::destroy(const Graph& graph) { cuda_.ignore(cuda_.GraphExecDestroy(graph.exec)); }

void GraphCache::forget(std::size_t profile) {
  const auto gone =
      std::partition(graphs_.begin(), graphs_.end(), [&](const Graph& graph) { return graph.key.profile != profile; });
  std::for_each(gone, graphs_.end(), [&](const Graph& graph) { destroy(graph); });
  graphs_.erase(gone, graphs_.end());
  last_calls_.erase(std::remove_if(last_calls_.begin(), last_calls_.end(),
                                   [&](const GraphKey& key) { return key.profile == profile; }),
                    last_calls_.end());
}

void GraphCache::forget_all() {
  std::for_each(graphs_.begin(), graphs_.end(), [&](const Graph& graph) { destroy(graph); });
  graphs_.clear();
  last_calls_.clear();
  moving_.clear();
}

}  // namespace executorch_tensorrt
