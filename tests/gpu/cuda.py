"""As much of CUDA's runtime as tests and benchmarks on a GPU need: device arrays, and streams that can be held."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

_NAMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so")
_TO_DEVICE, _TO_HOST = 1, 2
_NOT_READY = 600
_NON_BLOCKING = 1
_HELD_SECONDS = 20


@cache
def cudart() -> Any:
    """CUDA's runtime library.

    Raises:
        OSError: there is none.
    """
    for name in filter(None, (os.environ.get("ETRT_CUDART"), *_NAMES)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"none of {', '.join(_NAMES)}, nor $ETRT_CUDART")


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library.

    Raises:
        RuntimeError: it returned an error.
    """
    status = getattr(cudart(), name)(*arguments)
    if status:
        cudart().cudaGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"{name}: {cudart().cudaGetErrorString(status).decode()}")


def device_count() -> int:
    count = ctypes.c_int()
    call("cudaGetDeviceCount", ctypes.byref(count))
    return count.value


def free_memory() -> int:
    """Bytes of device memory that nobody has."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return free.value


class DeviceArray:
    """Memory on the current device, which others see through `__cuda_array_interface__`."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.nbytes = math.prod(shape) * self.dtype.itemsize
        pointer = ctypes.c_void_p()
        call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(max(self.nbytes, 1)))
        self.address: int = pointer.value or 0

    def __del__(self) -> None:
        if hasattr(self, "address"):
            cudart().cudaFree(ctypes.c_void_p(self.address))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3}


def to_device(array: np.ndarray[Any, Any]) -> DeviceArray:
    made = DeviceArray(array.shape, array.dtype)
    array = np.ascontiguousarray(array)
    _copy(made.address, array.ctypes.data, array.nbytes, _TO_DEVICE)
    return made


def pinned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array in page-locked host memory, which is freed with the last view of it."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    pointer = ctypes.c_void_p()
    call("cudaMallocHost", ctypes.byref(pointer), ctypes.c_size_t(max(nbytes, 1)))
    memory = (ctypes.c_byte * nbytes).from_address(pointer.value or 0)
    weakref.finalize(memory, cudart().cudaFreeHost, pointer)
    return np.frombuffer(memory, dtype).reshape(shape)


def to_host(value: Any) -> np.ndarray[Any, Any]:
    """A copy of an array that lies on the device, or the array on the host. Who works on it must be done."""
    if not hasattr(value, "__cuda_array_interface__"):
        return np.asarray(value)
    seen = value.__cuda_array_interface__
    array = np.empty(seen["shape"], np.dtype(seen["typestr"]))
    _copy(array.ctypes.data, seen["data"][0], array.nbytes, _TO_HOST)
    return array


def lies_on_device(value: Any) -> bool:
    return hasattr(value, "__cuda_array_interface__")


def _copy(to: int, source: int, nbytes: int, kind: int) -> None:
    call("cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(nbytes), kind)


class Stream:
    """A stream that does not wait for CUDA's default stream."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        call("cudaStreamCreateWithFlags", ctypes.byref(handle), _NON_BLOCKING)
        self.handle: int = handle.value or 0

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            cudart().cudaStreamDestroy(ctypes.c_void_p(self.handle))

    def synchronize(self) -> None:
        call("cudaStreamSynchronize", ctypes.c_void_p(self.handle))

    def is_busy(self) -> bool:
        status = cudart().cudaStreamQuery(ctypes.c_void_p(self.handle))
        if status not in (0, _NOT_READY):
            raise RuntimeError(f"cudaStreamQuery: error {status}")
        return status == _NOT_READY

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing that is put on the stream begins before the block ends; after it, the stream is drained.

        Raises:
            AssertionError: the block waited for the stream. It was let go after a while.
        """
        gate = _Gate()
        call("cudaLaunchHostFunc", ctypes.c_void_p(self.handle), gate.wait, gate.place)
        watchdog = threading.Timer(_HELD_SECONDS, gate.open)
        watchdog.start()
        try:
            yield
        finally:
            waited = not watchdog.is_alive()
            watchdog.cancel()
            gate.open()
            self.synchronize()
        assert not waited, "something waited for the stream while it was held"


class Graph:
    """What was put on a stream while it was captured."""

    def __init__(self) -> None:
        self._graph, self._exec = ctypes.c_void_p(), ctypes.c_void_p()

    def __del__(self) -> None:
        if self._exec.value:
            cudart().cudaGraphExecDestroy(self._exec)
        if self._graph.value:
            cudart().cudaGraphDestroy(self._graph)

    def launch(self, stream: Stream) -> None:
        call("cudaGraphLaunch", self._exec, ctypes.c_void_p(stream.handle))

    @staticmethod
    @contextmanager
    def captured(stream: Stream) -> Iterator[Graph]:
        """Capture a stream in the block, in the mode that allows least. After the block, the graph can be launched."""
        graph = Graph()
        call("cudaStreamBeginCapture", ctypes.c_void_p(stream.handle), 0)
        try:
            yield graph
        finally:
            call("cudaStreamEndCapture", ctypes.c_void_p(stream.handle), ctypes.byref(graph._graph))
        call("cudaGraphInstantiateWithFlags", ctypes.byref(graph._exec), graph._graph, ctypes.c_ulonglong(0))


class _Gate:
    """A semaphore of the C library: CUDA's thread waits in it without Python's lock."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._semaphore = ctypes.create_string_buffer(64)
        self.place = ctypes.cast(self._semaphore, ctypes.c_void_p)
        self.wait = ctypes.cast(self._libc.sem_wait, ctypes.c_void_p)
        self._libc.sem_init(self.place, 0, 0)

    def open(self) -> None:
        self._libc.sem_post(self.place)
