"""A GPU as the device of random sequences.

    python -m gpu.random_sequences gpu 1 50 FOLDER --here

FOLDER is the one that make_cases.py filled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any

import numpy as np
from gpu import cuda
from sequences.drawing import Traits, draw
from sequences.oracle import Array
from sequences.running import Kind, Runner, main
from sequences.steps import Failure, Sequence

TRAITS = Traits(where=("device", "host"), has_failures=False)

_WHEREVER = 4
_GLOBAL = 1  # as cudaMallocManaged wants it
_OWN = 2
_BUSY_US = 2000


class RealMemory:
    def __init__(self, values: Array, place: str) -> None:
        self._dtype, self._pinned = values.dtype, place == "pinned"
        pointer = ctypes.c_void_p()
        nbytes = ctypes.c_size_t(max(values.nbytes, 1))
        if place == "moved":
            cuda.call("cudaMalloc", ctypes.byref(pointer), nbytes)
        elif place == "managed":
            cuda.call("cudaMallocManaged", ctypes.byref(pointer), nbytes, _GLOBAL)
        else:
            cuda.call("cudaMallocHost", ctypes.byref(pointer), nbytes)
        self.address: int = pointer.value or 0
        self.write(values)
        self.argument: Any = self.view(values.shape)
        if self._pinned:
            place_of = (ctypes.c_char * values.nbytes).from_address(self.address)
            self.argument = np.frombuffer(place_of, values.dtype).reshape(values.shape)

    def write(self, values: Array) -> None:
        values = np.ascontiguousarray(values)
        _copy(self.address, values.ctypes.data, values.nbytes)

    def view(self, shape: tuple[int, ...]) -> View:
        return View(self.address, shape, self._dtype.str)

    def free(self) -> None:
        cuda.call("cudaFreeHost" if self._pinned else "cudaFree", ctypes.c_void_p(self.address))


class View:
    def __init__(self, address: int, shape: tuple[int, ...], dtype: str) -> None:
        self.__cuda_array_interface__ = {"data": (address, False), "shape": shape, "typestr": dtype, "version": 3}


def _copy(to: int, source: int, nbytes: int) -> None:
    cuda.call("cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(nbytes), _WHEREVER)


class RealDevice:
    """See `sequences.device.Device`. Nothing is made to fail here."""

    def __init__(self) -> None:
        self._streams: dict[int, cuda.Stream] = {}
        libc = ctypes.CDLL(None)
        self._sleep = ctypes.cast(libc.usleep, ctypes.c_void_p)

    def memory(self, values: Array, place: str) -> RealMemory:
        return RealMemory(values, place)

    def peek(self, address: int, shape: tuple[int, ...], dtype: Any) -> Array:
        found = np.empty(shape, dtype)
        _copy(found.ctypes.data, address, found.nbytes)
        return found

    def stream(self, number: int) -> int:
        if number == 3:
            return 0
        if number not in self._streams:
            self._streams[number] = cuda.Stream()
        return self._streams[number].handle

    def replace_stream(self, number: int) -> None:
        self._streams.pop(number, None)

    def run(self, number: int) -> None:
        cuda.call("cudaStreamSynchronize", ctypes.c_void_p(self.stream(number)))

    def run_own(self) -> None:
        cuda.call("cudaStreamSynchronize", ctypes.c_void_p(_OWN))

    def busy(self, number: int) -> None:
        """A CUDA thread sleeps, and what is queued behind waits for it."""
        handle = ctypes.c_void_p(self.stream(number))
        cuda.call("cudaLaunchHostFunc", handle, self._sleep, ctypes.c_void_p(_BUSY_US))

    def begin_capture(self, number: int) -> None:
        cuda.call("cudaStreamBeginCapture", ctypes.c_void_p(self.stream(number)), 0)

    def end_capture(self, number: int) -> Any:
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        cuda.call("cudaStreamEndCapture", ctypes.c_void_p(self.stream(number)), ctypes.byref(graph))
        cuda.call("cudaGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_ulonglong(0))
        cuda.call("cudaGraphDestroy", graph)
        return made

    def launch(self, graph: Any, number: int) -> None:
        cuda.call("cudaGraphLaunch", graph, ctypes.c_void_p(self.stream(number)))

    def end_graph(self, graph: Any) -> None:
        cuda.call("cudaGraphExecDestroy", graph)

    def fail(self, failure: Failure) -> None:
        raise NotImplementedError

    def stop_failing(self) -> list[BaseException | str]:
        raise NotImplementedError

    def enqueued(self) -> int:
        return 0

    def faults(self) -> Several[str]:
        return []

    def alive(self) -> Any:
        return None

    def end(self) -> None:
        cuda.call("cudaDeviceSynchronize")


def gpu(options: Several[str]) -> Kind:
    (folder,) = options

    def runner() -> Runner:
        from sequences.playing import play

        device = RealDevice()

        def run(sequence: Sequence) -> None:
            play(sequence, Path(folder) / f"sequences_{sequence.where}.pte", device)

        return run

    return Kind(lambda seed: draw(seed, TRAITS), runner)


if __name__ == "__main__":
    main({"gpu": gpu})
