// CUDA's runtime library, found and loaded when it is first needed. None of its headers is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/internal.h"
#include "core/status.h"

namespace executorch_tensorrt {

using CudaStream = void*;
using CudaEvent = void*;
using CudaGraph = void*;
using CudaGraphExec = void*;

// The calling thread's own stream, as every copy of CUDA's runtime in the process knows it.
inline CudaStream per_thread_stream() { return reinterpret_cast<CudaStream>(2); }

// cudaPointerAttributes, with room for what later versions append.
struct CudaPointerAttributes {
  int type = 0;
  int device = 0;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  unsigned char later[256] = {};
};

// The direction of a copy, in CUDA's numbers. kWherever leaves it to CUDA to find out.
enum CudaCopy : int { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kWherever = 4 };

// What a pointer is, in CUDA's numbers. Memory that CUDA does not know, from malloc(), is kUnregistered.
enum CudaMemoryType : int { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 };

// The functions of the library that was loaded, under CUDA's names. They return cudaError_t.
struct Cuda {
  int (*GetDeviceCount)(int*);
  int (*GetDevice)(int*);
  int (*SetDevice)(int);
  int (*DeviceGetAttribute)(int*, int, int);
  int (*GetDeviceProperties)(void*, int);
  int (*RuntimeGetVersion)(int*);
  int (*DriverGetVersion)(int*);
  int (*GetLastError)();
  const char* (*GetErrorName)(int);
  const char* (*GetErrorString)(int);
  int (*Malloc)(void**, std::size_t);
  int (*Free)(void*);
  int (*MallocHost)(void**, std::size_t);
  int (*FreeHost)(void*);
  int (*Memcpy)(void*, const void*, std::size_t, int);
  int (*MemcpyAsync)(void*, const void*, std::size_t, int, CudaStream);
  int (*MemsetAsync)(void*, int, std::size_t, CudaStream);
  int (*Memcpy2DAsync)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, CudaStream);
  int (*PointerGetAttributes)(void*, const void*);  // of CudaPointerAttributes
  int (*DeviceSynchronize)();
  int (*StreamSynchronize)(CudaStream);
  int (*StreamWaitEvent)(CudaStream, CudaEvent, unsigned);
  int (*StreamIsCapturing)(CudaStream, int*);
  int (*ThreadExchangeStreamCaptureMode)(int*);
  int (*EventCreateWithFlags)(CudaEvent*, unsigned);
  int (*EventDestroy)(CudaEvent);
  int (*EventRecord)(CudaEvent, CudaStream);
  int (*EventQuery)(CudaEvent);
  int (*EventSynchronize)(CudaEvent);
  int (*EventElapsedTime)(float*, CudaEvent, CudaEvent);

  int (*StreamGetId)(CudaStream, unsigned long long*);  // null in libraries before 12.0
  int (*HostRegister)(void*, std::size_t, unsigned);
  int (*HostUnregister)(void*);

  // Null in libraries before 11.4; see has_graphs().
  int (*StreamCreateWithFlags)(CudaStream*, unsigned);
  int (*StreamDestroy)(CudaStream);
  int (*StreamBeginCapture)(CudaStream, int);
  int (*StreamEndCapture)(CudaStream, CudaGraph*);
  int (*GraphInstantiateWithFlags)(CudaGraphExec*, CudaGraph, unsigned long long);
  int (*GraphLaunch)(CudaGraphExec, CudaStream);
  int (*GraphExecDestroy)(CudaGraphExec);
  int (*GraphDestroy)(CudaGraph);

  bool has_graphs() const;

  // Loads it from $ETRT_CUDART if that is set; else takes the one that the process has; else one of NVIDIA's Python
  // packages beside this library's, and then the system's. kNotSupported, naming what was tried, without one, and when
  // there is no driver or no GPU. Thread-safe; success is kept.
  ETRT_INTERNAL static Result<const Cuda*> get();

  // Ok for 0; a call that succeeds allocates no memory for words.
  Status check(int error, const char* what) const { return error == 0 ? Status() : failure(error, what); }

  // kOutOfMemory when memory ran out, else kInternal, with `what` and CUDA's own words. Clears the error that CUDA
  // keeps for the thread.
  ETRT_INTERNAL Status failure(int error, const std::string& what) const;

  // For what may fail without harm: clears the error that CUDA keeps for the thread.
  void ignore(int error) const {
    if (error != 0) {
      GetLastError();
    }
  }

  // kNotSupported when this process has no such device.
  ETRT_INTERNAL Status check_device(int device) const;

  // "NVIDIA H200, compute capability 9.0, driver for CUDA 13.0"
  ETRT_INTERNAL std::string describe(int device) const;
};

// What this thread does until the scope ends takes no part in captures of streams, its own or other threads', and
// breaks none: to wait for other streams, or to allocate memory. CUDA refuses that else.
class OutsideCaptures {
 public:
  explicit OutsideCaptures(const Cuda& cuda) : cuda_(cuda) { cuda_.ignore(exchange()); }
  ~OutsideCaptures() { cuda_.ignore(exchange()); }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

 private:
  int exchange() { return cuda_.ThreadExchangeStreamCaptureMode(&mode_); }

  const Cuda& cuda_;
  int mode_ = 2;  // relaxed, then that of before
};

// The device that is current on this thread is `device` until the scope ends.
class CudaDeviceScope {
 public:
  CudaDeviceScope(const Cuda& cuda, int device) : cuda_(cuda) {
    status_ = cuda_.check(cuda_.GetDevice(&before_), "asking for the current device");
    if (!status_.ok() || before_ == device) {
      if (status_.ok()) {
        bind(device);
      }
      return;
    }
    changed_ = true;
    if (const int error = cuda_.SetDevice(device); error != 0) {
      status_ = cuda_.failure(error, "choosing device " + std::to_string(device));
      return;
    }
    bind(device);
  }
  ~CudaDeviceScope() {
    if (changed_) {
      cuda_.ignore(cuda_.SetDevice(before_));
    }
  }
  CudaDeviceScope(const CudaDeviceScope&) = delete;
  CudaDeviceScope& operator=(const CudaDeviceScope&) = delete;

  const Status& status() const { return status_; }

 private:
  // A thread has the device's context only from the first call of the runtime that needs it. TensorRT launches some
  // kernels by the driver, which fails without.
  void bind(int device) {
    static thread_local std::uint64_t bound = 0;
    const std::uint64_t bit = std::uint64_t{1} << (device % 64);
    if ((bound & bit) == 0) {
      const OutsideCaptures outside(cuda_);
      cuda_.ignore(cuda_.Free(nullptr));
      bound |= bit;
    }
  }

  const Cuda& cuda_;
  int before_ = 0;
  bool changed_ = false;
  Status status_;
};

}  // namespace executorch_tensorrt
