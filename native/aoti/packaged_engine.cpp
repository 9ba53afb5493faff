#include "aoti/packaged_engine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/blob.h"
#include "core/digest.h"
#include "core/text.h"
#include "process/yielding_lock.h"

namespace executorch_tensorrt {
namespace {

struct Header {
  char magic[4];
  std::uint32_t is_outside;
  std::uint64_t size;
  std::uint8_t digest[32];
  std::int32_t request;
  std::uint8_t zeros[12];
};
static_assert(sizeof(Header) == kPackagedHeaderSize);

// Digest and request: what differs in either is another engine.
using Key = std::string;

Key key_of(const Header& header) {
  Key key(reinterpret_cast<const char*>(header.digest), sizeof(header.digest));
  return key.append(reinterpret_cast<const char*>(&header.request), sizeof(header.request));
}

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = 0;  // a digest is one already
    std::memcpy(&hash, key.data(), sizeof(hash));
    return hash;
  }
};

struct Mapped {
  std::shared_ptr<const void> data;
  std::size_t size = 0;
};

struct Registry {
  std::shared_mutex mutex;  // guards engines
  std::unordered_map<Key, std::shared_ptr<PackagedEngine>, KeyHash> engines;
  std::mutex making;  // taken before mutex; guards mapped
  std::map<std::string, Mapped> mapped;
};

// The last to end, so that traces are written where no one called release_packaged_engines().
Registry& registry() {
  static Registry instance;
  return instance;
}

std::string digest_of(const Header& header) { return hexadecimal(header.digest, sizeof(header.digest)); }

// The bytes of an engine, for as long as it lives. Called with `making` taken.
Result<std::shared_ptr<const void>> blob_of(const Header& header, const void* data, std::size_t size) {
  const std::string digest = digest_of(header);
  if (header.is_outside == 0) {
    const void* const inside = static_cast<const char*>(data) + kPackagedHeaderSize;
    if (size - kPackagedHeaderSize < header.size || sha256(inside, header.size) != digest) {
      return invalid_program("the engine is damaged: its bytes are not those that were packaged");
    }
    const std::shared_ptr<char[]> copy(new char[header.size]);
    std::memcpy(copy.get(), inside, header.size);
    return std::shared_ptr<const void>(copy, copy.get());
  }
  const auto found = registry().mapped.find(digest);
  if (found == registry().mapped.end()) {
    return Status(StatusCode::kNotSupported,
                  "engine " + digest.substr(0, 12) + " of " + std::to_string(header.size) +
                      " bytes lies outside the package's code, and is not in this process; load the package with "
                      "executorch_tensorrt.aoti.load()");
  }
  if (found->second.size != header.size) {
    return invalid_program("engine " + digest.substr(0, 12) + " has another size than when it was packaged: got " +
                           std::to_string(found->second.size) + " bytes, allowed " + std::to_string(header.size));
  }
  return found->second.data;
}

Result<std::shared_ptr<PackagedEngine>> make_engine(const Header& header, const void* data, std::size_t size) {
  auto blob = blob_of(header, data, size);
  if (!blob.ok()) {
    return blob.status();
  }
  const Result<BlobView> view = parse_blob(blob->get(), header.size);
  if (!view.ok()) {
    return view.status();
  }
  Result<EngineMetadata> metadata = parse_metadata(view->metadata);
  if (!metadata.ok()) {
    return metadata.status();
  }
  DelegateOptions options;
  options.default_request = header.request < 0 ? Request::automatic() : Request::pinned(header.request);
  auto handle = EngineHandle::create("package", blob->get(), header.size, options);
  if (!handle.ok()) {
    return handle.status();
  }
  // PyTorch's runners are waited for with the GIL, so a call that let go of it might not get it back.
  (*handle)->yield_to_python(view->format != BlobFormat::kCpu);
  auto engine = std::make_shared<PackagedEngine>();
  engine->label = "engine " + (metadata->record ? metadata->record->engine_id : digest_of(header).substr(0, 12));
  engine->metadata = std::move(*metadata);
  engine->blob = std::move(*blob);
  engine->handle = std::move(*handle);
  return engine;
}

std::shared_ptr<PackagedEngine> find(const Key& key) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.engines.find(key);
  return found != all.engines.end() ? found->second : nullptr;
}

}  // namespace

Result<std::shared_ptr<PackagedEngine>> packaged_engine(const void* data, std::size_t size) {
  Header header;
  if (size < sizeof(header) || std::memcmp(data, "ETP1", 4) != 0) {
    return invalid_argument("engine: got a tensor that holds no engine, allowed one that aoti.compile() made");
  }
  std::memcpy(&header, data, sizeof(header));
  const Key key = key_of(header);
  if (auto engine = find(key)) {
    return engine;
  }
  Registry& all = registry();
  const std::unique_lock<std::mutex> making = locked(all.making);
  if (auto engine = find(key)) {
    return engine;
  }
  auto made = make_engine(header, data, size);
  if (made.ok()) {
    const std::lock_guard<std::shared_mutex> lock(all.mutex);
    all.engines.emplace(key, *made);
  }
  return made;
}

Status map_packaged_engine(const std::string& path, std::size_t offset, std::size_t size, const std::string& digest) {
  Registry& all = registry();
  const std::unique_lock<std::mutex> making = locked(all.making);
  if (all.mapped.count(digest) > 0) {
    return {};
  }
  const auto failed = [&path](const char* what) {
    return invalid_argument("'" + path + "' cannot be mapped: " + what);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return failed(std::strerror(errno));
  }
  struct stat info{};
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t start = offset / page * page;
  const std::size_t length = offset - start + size;
  if (fstat(file, &info) != 0 || size == 0 || static_cast<std::size_t>(info.st_size) < offset ||
      static_cast<std::size_t>(info.st_size) - offset < size) {
    close(file);
    return failed("it is shorter than the engine in it");
  }
  void* const mapped = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(start));
  const int error = errno;
  close(file);
  if (mapped == MAP_FAILED) {
    return failed(std::strerror(error));
  }
  const std::shared_ptr<void> pages(mapped, [length](void* data) { munmap(data, length); });
  const std::shared_ptr<const void> engine(pages, static_cast<char*>(mapped) + (offset - start));
  if (const std::string got = sha256(engine.get(), size); got != digest) {
    return invalid_program(quoted(path) + " is damaged: engine " + digest.substr(0, 12) +
                           " has other bytes than its digest says, got " + got.substr(0, 12));
  }
  all.mapped[digest] = {engine, size};
  return {};
}

void release_packaged_engines() {
  Registry& all = registry();
  const std::unique_lock<std::mutex> making = locked(all.making);
  std::unordered_map<Key, std::shared_ptr<PackagedEngine>, KeyHash> released;
  {
    const std::lock_guard<std::shared_mutex> lock(all.mutex);
    released.swap(all.engines);
  }
}

}  // namespace executorch_tensorrt
