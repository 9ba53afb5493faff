"""The GPU that TensorRT builds on, asked of NVIDIA's driver: a machine that builds has no torch."""

from __future__ import annotations

import ctypes
from typing import Any

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


def current_gpu() -> str:
    """Name and compute capability of this thread's device, the first one if it has none; empty without a GPU."""
    try:
        driver: Any = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    return gpu_of(driver)


def gpu_of(driver: Any) -> str:
    """The same, with the driver's library."""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    if driver.cuInit(0) or (
        driver.cuCtxGetDevice(ctypes.byref(device)) and driver.cuDeviceGet(ctypes.byref(device), 0)
    ):
        return ""
    if driver.cuDeviceGetName(name, len(name), device):
        return ""
    for value, attribute in ((major, _MAJOR), (minor, _MINOR)):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return ""
    return f"{name.value.decode(errors='replace')} (compute capability {major.value}.{minor.value})"
