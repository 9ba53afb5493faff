// The blob's header: what is accepted lies within the bytes.
#include "core/blob.h"
#include "fuzz.h"

using namespace executorch_tensorrt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto view = parse_blob(data, size);
  if (!view.ok()) {
    require(!view.status().message().empty());
    return 0;
  }
  const auto* metadata = reinterpret_cast<const std::uint8_t*>(view->metadata.data());
  require(metadata >= data && view->metadata.size() <= size && metadata + view->metadata.size() <= data + size);
  require(view->engine >= data && view->engine_size <= size && view->engine + view->engine_size <= data + size);
  require(text_of(data, 4) == magic_of(view->format));
  return 0;
}
