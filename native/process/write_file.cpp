#include "process/write_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace executorch_tensorrt {

Status write_file(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".part";
  const auto failure = [&] {
    const int error = errno;
    const std::string& name = error == EEXIST ? temporary : path;
    Status status{StatusCode::kInternal, "cannot write '" + name + "': " + std::strerror(error)};
    if (error != EEXIST) {  // another's file, or a link somebody left there
      std::remove(temporary.c_str());
    }
    return status;
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wbx"), &std::fclose);
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    return failure();
  }
  if (std::fclose(file.release()) != 0 || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return failure();
  }
  return {};
}

}  // namespace executorch_tensorrt
