"""What `etrt doctor` finds out, as JSON values."""

from __future__ import annotations

import ctypes
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from executorch_tensorrt import _native
from executorch_tensorrt.profiling.machine import describe_machine

_PACKAGES = (
    "executorch-tensorrt", "executorch", "numpy", "torch", "torch-tensorrt", "tensorrt", "tensorrt-rtx", "transformers",
)  # fmt: skip
_LIBRARIES = (
    ("CUDA runtime", ("libcudart.so.13", "libcudart.so.12", "libcudart.so")),
    ("TensorRT", ("libnvinfer.so.11", "libnvinfer.so.10", "libnvinfer.so.8", "libnvinfer.so")),
    ("TensorRT-RTX", ("libtensorrt_rtx.so.1", "libtensorrt_rtx.so")),
)
_KINDS = ("cpu", "tensorrt", "tensorrt_rtx")
_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76


def examine() -> dict[str, Any]:
    """Everything that the command shows. Nothing is changed, and a missing part is no error."""
    packages = {name: _version(name) or "not installed" for name in _PACKAGES}
    return {
        "versions": {"python": platform.python_version(), **packages},
        "machine": describe_machine(),
        "cuda": _cuda(),
        "libraries": [_library(name, files) for name, files in _LIBRARIES],
        "backend_registered": not _native.backend_problem(),
        "backend_problem": _native.backend_problem(),
        "engines": _engines(),
        "tracing_compiled_in": _native.tracing_compiled_in(),
    }


def runnable_kinds() -> set[str]:
    """The engine kinds that run on this machine and in this process: all but "cpu" work on a GPU."""
    if _native.backend_problem():
        return set()
    kinds = set(_native.engine_runtimes())
    return kinds if _native.device_memory_available() else kinds & {"cpu"}


def _engines() -> list[dict[str, Any]]:
    installed, runs = set(_native.engine_runtimes()), runnable_kinds()
    return [
        {"kind": kind, "runs": kind in runs, "reason": "" if kind in runs else _reason(kind in installed)}
        for kind in sorted({*_KINDS, *installed})
    ]


def _reason(installed: bool) -> str:
    if _native.backend_problem():
        return "the backend is another library's in this process"
    return "it is installed, but CUDA can't be used here" if installed else "no runtime for it is loaded"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _library(name: str, files: tuple[str, ...]) -> dict[str, str]:
    for file in files:
        try:
            ctypes.CDLL(file)
        except OSError:
            continue
        return {"name": name, "library": file, "problem": ""}
    return {"name": name, "library": "", "problem": f"none of {', '.join(files)} is on the library path"}


def _cuda() -> dict[str, Any]:
    found: dict[str, Any] = {"driver": "", "problem": "", "devices": []}
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {**found, "problem": "libcuda.so.1 is not on the library path; the machine may have no NVIDIA driver"}
    number, count = ctypes.c_int(), ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDriverGetVersion(ctypes.byref(number))
    if code := code or driver.cuDeviceGetCount(ctypes.byref(count)):
        return {**found, "problem": f"the driver answers with CUDA error {code}"}
    found["driver"] = f"{number.value // 1000}.{number.value % 1000 // 10}"
    found["devices"] = [_device(driver, index) for index in range(count.value)]
    return found


def _device(driver: ctypes.CDLL, index: int) -> dict[str, Any]:
    device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    numbers: list[int] = []
    for attribute in (_COMPUTE_MAJOR, _COMPUTE_MINOR):
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        numbers.append(value.value)
    return {"name": name.value.decode(errors="replace"), "bytes": size.value, "compute": ".".join(map(str, numbers))}
