// GraphCache: CUDA graphs of an engine's calls, to launch in place of queueing their work again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/shape.h"
#include "device/cuda.h"

namespace executorch_tensorrt {

// All that a graph is made of but the engine's own memory. Addresses: of inputs, outputs, and the activation memory.
struct GraphKey {
  std::size_t profile = 0;
  std::vector<Shape> input_shapes;
  std::vector<const void*> addresses;

  friend bool operator==(const GraphKey& a, const GraphKey& b) {
    return a.profile == b.profile && a.addresses == b.addresses && a.input_shapes == b.input_shapes;
  }
};

class GraphCache {
 public:
  // How many graphs an engine keeps; the one whose last launch is longest ago makes place.
  static constexpr std::size_t kMaxGraphs = 16;

  // kNotSupported when this CUDA has no graphs.
  static Result<std::unique_ptr<GraphCache>> create(const Cuda& cuda);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Copies the output shapes of these input shapes, which a graph of theirs was made with; false without one.
  bool output_shapes(std::size_t profile, const std::vector<Shape>& input_shapes, std::vector<Shape>& shapes) const;

  bool has(const GraphKey& key) const { return find(key) != nullptr; }

  // Of a key that it has.
  Status launch(const GraphKey& key, CudaStream stream);

  // Whether a call of this key was one of the last; from now on it is. A graph pays where a call comes again.
  bool seen(const GraphKey& key);

  // A call of these shapes that no graph of theirs fits, because its addresses are new, or one that a graph fits.
  void note_addresses(const GraphKey& key, bool are_new);
  // Whether calls of these shapes keep coming with new addresses. Memory of one's own, in the same place for all of
  // them, makes them fit then.
  bool addresses_move(const GraphKey& key) const;

  // Makes a graph of what `enqueue` puts on the stream that it is given, which does nothing then. TensorRT wants to
  // have queued a call of the same shapes before. Where it fails, the engine's context may be of no more use.
  Status capture(const GraphKey& key, std::vector<Shape> output_shapes,
                 const std::function<Status(CudaStream)>& enqueue);

  // Before the context of a profile is gone, or all are.
  void forget(std::size_t profile);
  void forget_all();
  std::size_t size() const { return graphs_.size(); }

 private:
  struct Graph {
    GraphKey key;
    std::vector<Shape> output_shapes;
    CudaGraphExec exec = nullptr;
    mutable std::uint64_t last_launch = 0;
  };

  explicit GraphCache(const Cuda& cuda) : cuda_(cuda) {}
  const Graph* find(const GraphKey& key) const;
  void destroy(const Graph& graph);
  void make_place();

  const Cuda& cuda_;
  CudaStream stream_ = nullptr;  // for captures alone: nothing runs on it
  std::vector<Graph> graphs_;
  std::vector<GraphKey> last_calls_;  // the newest last
  std::uint64_t launches_ = 0;
  struct Moving {
    std::size_t profile = 0;
    std::vector<Shape> input_shapes;
    int new_addresses = 0;  // in a row
  };
  std::vector<Moving> moving_;  // at most kMaxGraphs
};

}  // namespace executorch_tensorrt
