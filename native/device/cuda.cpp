#include "device/cuda.h"

#include <dlfcn.h>
#include <glob.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace executorch_tensorrt {
namespace {

constexpr int kErrorMemoryAllocation = 2;
constexpr int kErrorInsufficientDriver = 35;
constexpr int kErrorNoDevice = 100;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

// Newest first.
constexpr std::array kNames = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// NVIDIA's packages put the library into site-packages/nvidia/<package>/lib; ours is in site-packages/<package>/lib.
std::vector<std::string> packaged() {
  std::vector<std::string> found;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&version_text), &info) == 0 || info.dli_fname == nullptr) {
    return found;
  }
  const std::string self = info.dli_fname;
  const std::string pattern = self.substr(0, self.rfind('/') + 1) + "../../nvidia/*/lib/libcudart.so.[0-9]*";
  glob_t matches;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (std::size_t k = matches.gl_pathc; k-- > 0;) {
      found.emplace_back(matches.gl_pathv[k]);
    }
  }
  globfree(&matches);
  return found;
}

void* open_library(std::string& tried) {
  const auto open = [&](const std::string& name, int flags = 0) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
    if (library == nullptr && flags == 0) {
      tried += (tried.empty() ? "" : ", ") + name;
    }
    return library;
  };
  if (const char* named = std::getenv("ETRT_CUDART"); named != nullptr && *named != '\0') {
    return open(named);
  }
  for (const char* name : kNames) {
    if (void* library = open(name, RTLD_NOLOAD)) {
      return library;
    }
  }
  for (const std::string& path : packaged()) {
    if (void* library = open(path)) {
      return library;
    }
  }
  for (const char* name : kNames) {
    if (void* library = open(name)) {
      return library;
    }
  }
  return open("/usr/local/cuda/lib64/libcudart.so");
}

Status unavailable(const std::string& text) { return {StatusCode::kNotSupported, "CUDA can't be used here: " + text}; }

Status resolve(void* library, Cuda& cuda) {
  std::string missing;
  const auto find_optional = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  const auto find = [&](auto& function, const char* name) {
    find_optional(function, name);
    if (function == nullptr) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  };
  find(cuda.GetDeviceCount, "cudaGetDeviceCount");
  find(cuda.GetDevice, "cudaGetDevice");
  find(cuda.SetDevice, "cudaSetDevice");
  find(cuda.DeviceGetAttribute, "cudaDeviceGetAttribute");
  find(cuda.GetDeviceProperties, "cudaGetDeviceProperties");
  find(cuda.RuntimeGetVersion, "cudaRuntimeGetVersion");
  find(cuda.DriverGetVersion, "cudaDriverGetVersion");
  find(cuda.GetLastError, "cudaGetLastError");
  find(cuda.GetErrorName, "cudaGetErrorName");
  find(cuda.GetErrorString, "cudaGetErrorString");
  find(cuda.Malloc, "cudaMalloc");
  find(cuda.Free, "cudaFree");
  find(cuda.MallocHost, "cudaMallocHost");
  find(cuda.FreeHost, "cudaFreeHost");
  find(cuda.Memcpy, "cudaMemcpy");
  find(cuda.MemcpyAsync, "cudaMemcpyAsync");
  find(cuda.MemsetAsync, "cudaMemsetAsync");
  find(cuda.Memcpy2DAsync, "cudaMemcpy2DAsync");
  find(cuda.PointerGetAttributes, "cudaPointerGetAttributes");
  find(cuda.DeviceSynchronize, "cudaDeviceSynchronize");
  find(cuda.StreamSynchronize, "cudaStreamSynchronize");
  find(cuda.StreamWaitEvent, "cudaStreamWaitEvent");
  find(cuda.StreamIsCapturing, "cudaStreamIsCapturing");
  find(cuda.ThreadExchangeStreamCaptureMode, "cudaThreadExchangeStreamCaptureMode");
  find(cuda.EventCreateWithFlags, "cudaEventCreateWithFlags");
  find(cuda.EventDestroy, "cudaEventDestroy");
  find(cuda.EventRecord, "cudaEventRecord");
  find(cuda.EventQuery, "cudaEventQuery");
  find(cuda.EventSynchronize, "cudaEventSynchronize");
  find(cuda.EventElapsedTime, "cudaEventElapsedTime");
  find(cuda.HostRegister, "cudaHostRegister");
  find(cuda.HostUnregister, "cudaHostUnregister");
  find_optional(cuda.StreamGetId, "cudaStreamGetId");
  find_optional(cuda.StreamCreateWithFlags, "cudaStreamCreateWithFlags");
  find_optional(cuda.StreamDestroy, "cudaStreamDestroy");
  find_optional(cuda.StreamBeginCapture, "cudaStreamBeginCapture");
  find_optional(cuda.StreamEndCapture, "cudaStreamEndCapture");
  find_optional(cuda.GraphInstantiateWithFlags, "cudaGraphInstantiateWithFlags");
  find_optional(cuda.GraphLaunch, "cudaGraphLaunch");
  find_optional(cuda.GraphExecDestroy, "cudaGraphExecDestroy");
  find_optional(cuda.GraphDestroy, "cudaGraphDestroy");
  return missing.empty() ? Status() : unavailable("the library has no " + missing + ", wanted CUDA 11.0 or later");
}

Status find_device(const Cuda& cuda) {
  int count = 0;
  const int error = cuda.GetDeviceCount(&count);
  if (error == 0 && count > 0) {
    return {};
  }
  cuda.GetLastError();
  if (error != 0 && error != kErrorNoDevice && error != kErrorInsufficientDriver) {
    return unavailable(std::string(cuda.GetErrorString(error)) + " (" + cuda.GetErrorName(error) + ")");
  }
  int runtime = 0;
  int driver = 0;
  cuda.RuntimeGetVersion(&runtime);
  cuda.DriverGetVersion(&driver);
  if (driver == 0) {
    return unavailable("no NVIDIA driver is loaded; install one, or export with engine=\"cpu\" to run here");
  }
  if (error == kErrorInsufficientDriver) {
    return unavailable("the driver is for CUDA " + version_text(driver) + ", the library is of CUDA " +
                       version_text(runtime) + "; update the driver, or name an older library in ETRT_CUDART");
  }
  return unavailable("there is no GPU that this process may use; look at CUDA_VISIBLE_DEVICES");
}

}  // namespace

Result<const Cuda*> Cuda::get() {
  static std::atomic<const Cuda*> loaded{nullptr};
  if (const Cuda* cuda = loaded.load(std::memory_order_acquire)) {
    return cuda;
  }
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const Cuda* cuda = loaded.load(std::memory_order_relaxed)) {
    return cuda;
  }
  std::string tried;
  void* library = open_library(tried);
  if (library == nullptr) {
    return unavailable("no library of its runtime was found, tried " + tried +
                       "; install it, or name its file in the environment variable ETRT_CUDART");
  }
  auto cuda = std::make_unique<Cuda>();
  Status status = resolve(library, *cuda);
  if (status.ok()) {
    status = find_device(*cuda);
  }
  if (!status.ok()) {
    dlclose(library);
    return status;
  }
  loaded.store(cuda.get(), std::memory_order_release);
  return static_cast<const Cuda*>(cuda.release());  // kept, like the library, as long as the process
}

bool Cuda::has_graphs() const {
  return StreamCreateWithFlags != nullptr && StreamDestroy != nullptr && StreamBeginCapture != nullptr &&
         StreamEndCapture != nullptr && GraphInstantiateWithFlags != nullptr && GraphLaunch != nullptr &&
         GraphExecDestroy != nullptr && GraphDestroy != nullptr;
}

Status Cuda::failure(int error, const std::string& what) const {
  GetLastError();
  return {error == kErrorMemoryAllocation ? StatusCode::kOutOfMemory : StatusCode::kInternal,
          what + " failed: " + GetErrorString(error) + " (" + GetErrorName(error) + ")"};
}

Status Cuda::check_device(int device) const {
  int count = 0;
  if (Status status = check(GetDeviceCount(&count), "counting devices"); !status.ok()) {
    return status;
  }
  if (device < 0 || device >= count) {
    return {StatusCode::kNotSupported, "the engine is for another CUDA device: got " + std::to_string(device) +
                                           ", allowed 0.." + std::to_string(count - 1) +
                                           "; look at CUDA_VISIBLE_DEVICES, or export with another device"};
  }
  return {};
}

std::string Cuda::describe(int device) const {
  // cudaDeviceProp begins with the name in every version; its size differs.
  std::vector<char> properties(1 << 14);
  std::string text = "CUDA device " + std::to_string(device);
  if (GetDeviceProperties(properties.data(), device) == 0) {
    properties[255] = '\0';
    text = properties.data();
  }
  int major = 0;
  int minor = 0;
  DeviceGetAttribute(&major, kComputeCapabilityMajor, device);
  DeviceGetAttribute(&minor, kComputeCapabilityMinor, device);
  int driver = 0;
  DriverGetVersion(&driver);
  GetLastError();
  return text + ", compute capability " + std::to_string(major) + "." + std::to_string(minor) + ", driver for CUDA " +
         version_text(driver);
}

}  // namespace executorch_tensorrt
