#include "process/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

namespace executorch_tensorrt {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel follows
constexpr std::size_t kLongestName = 100;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const { return number_; }
  // 0, or -1 with errno.
  int close() { return number_ < 0 ? 0 : ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

Status failed(const std::string& path) {
  return {StatusCode::kInternal, "cannot write '" + path + "': " + std::strerror(errno)};
}

// A path behind links. The last link may be that of an open descriptor, whose name leads nowhere a rename could go.
struct Target {
  std::string path;
  std::optional<int> descriptor;
};

std::optional<int> own_descriptor(const fs::path& path) {
  std::error_code error;
  const fs::path folder = fs::canonical(path.parent_path().empty() ? fs::path(".") : path.parent_path(), error);
  const std::string name = path.filename().string();
  const bool digits = !name.empty() && name.size() < 7 && name.find_first_not_of("0123456789") == std::string::npos;
  if (error || !digits || folder != fs::path("/proc") / std::to_string(getpid()) / "fd") {
    return std::nullopt;
  }
  return std::stoi(name);
}

Target followed(const std::string& path) {
  fs::path target = path;
  std::error_code error;
  for (int k = 0; k < kMostLinks; ++k) {
    if (const std::optional<int> descriptor = own_descriptor(target)) {
      return {path, descriptor};
    }
    if (!fs::is_symlink(fs::symlink_status(target, error))) {
      break;
    }
    target = target.parent_path() / fs::read_symlink(target, error);  // an absolute one takes the place of the folder
  }
  return {target.string(), std::nullopt};
}

bool write_all(int descriptor, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

Status write_through(const std::string& path, int descriptor, const std::string& bytes) {
  Descriptor file(descriptor);
  return file.number() >= 0 && write_all(file.number(), bytes) && file.close() == 0 ? Status{} : failed(path);
}

// The kernel applies the umask, which a process can't read without changing it for all of its threads.
Descriptor create_beside(const std::string& target, mode_t mode, std::string& temporary) {
  const std::size_t begin = target.rfind('/') + 1;  // 0 where there is no folder
  std::random_device random;
  int descriptor = -1;
  do {
    char suffix[20];
    std::snprintf(suffix, sizeof(suffix), "%08x%08x", random(), random());
    temporary = target.substr(0, begin) + "." + target.substr(begin, kLongestName) + "." + suffix;
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EEXIST);
  return Descriptor(descriptor);
}

// `mode`: of the file that is there.
Status replace(const std::string& path, const std::string& target, std::optional<mode_t> mode,
               const std::string& bytes) {
  std::string temporary;
  Descriptor file = create_beside(target, mode ? 0600 : 0666, temporary);
  if (file.number() < 0) {
    return failed(path);
  }
  const bool whole = write_all(file.number(), bytes) && (!mode || ::fchmod(file.number(), *mode) == 0) &&
                     file.close() == 0 && std::rename(temporary.c_str(), target.c_str()) == 0;
  if (!whole) {
    Status status = failed(path);
    ::unlink(temporary.c_str());
    return status;
  }
  return {};
}

}  // namespace

Status write_file(const std::string& path, const std::string& bytes) {
  const Target target = followed(path);
  if (target.descriptor) {
    return write_through(path, ::fcntl(*target.descriptor, F_DUPFD_CLOEXEC, 0), bytes);
  }
  struct stat found{};
  if (::stat(target.path.c_str(), &found) != 0) {
    return errno == ENOENT ? replace(path, target.path, std::nullopt, bytes) : failed(path);
  }
  if (!S_ISREG(found.st_mode)) {
    return write_through(path, ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC), bytes);
  }
  return replace(path, target.path, found.st_mode & 0777, bytes);
}

Status write_regular_file(const std::string& path, const std::string& bytes) {
  return replace(path, path, std::nullopt, bytes);
}

}  // namespace executorch_tensorrt
