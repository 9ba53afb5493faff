"""The fake CUDA of tests/fakes as a device of sequences, with engines that compute what `oracle` says."""

from __future__ import annotations

import builtins
import ctypes
import gc
import itertools
import os
from collections.abc import Callable
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any

import numpy as np
from fakes.python_engine import CudaArray, FakeCuda, FakeEngine, FakeRuntime, Range
from sequences import oracle
from sequences.drawing import STREAMS
from sequences.oracle import METHODS, POSITIONS, WIDTH, Array
from sequences.steps import Failure

from executorch_tensorrt import _native

_KINDS = {"pinned": 1, "moved": 2, "managed": 3}


class WatchedCuda(FakeCuda):
    """What goes wrong in work on a stream is kept."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.faults: list[str] = []

    def enqueue(self, stream: int, work: Callable[[], None]) -> None:
        def watched() -> None:
            try:
                work()
            except BaseException as error:
                self.faults.append(f"work on a stream: {error!r}")

        super().enqueue(stream, watched)


class FakeMemory:
    def __init__(self, cuda: FakeCuda, values: Array, kind: int) -> None:
        self._cuda = cuda
        values = np.ascontiguousarray(values)
        self.address: int = cuda.library.fake_cuda_allocate(ctypes.c_size_t(values.nbytes), kind, 0)
        self._dtype = values.dtype
        self.write(values)
        self.argument: Any = self.view(values.shape) if kind != _KINDS["pinned"] else self._at(values.shape)

    def _at(self, shape: tuple[int, ...]) -> Array:
        return self._cuda.at(self.address, shape, self._dtype)

    def write(self, values: Array) -> None:
        self._at(values.shape)[...] = values

    def view(self, shape: tuple[int, ...]) -> CudaArray:
        return CudaArray(self.address, shape, self._dtype.str)

    def free(self) -> None:
        self._cuda.library.fake_cuda_free(ctypes.c_void_p(self.address))


def _method_of(name: str) -> str:
    method = name.split("_")[0]
    return method if method in METHODS else ""


class Engines:
    """Loads engines, which it tells apart by the names of their inputs, and counts what they are asked."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.narrows_int64 = False
        self.failure: Failure | None = None
        self.position = 0
        self.failed: list[BaseException | str] = []
        self.enqueued = 0

    def __call__(self, plan: memoryview, builder: str, inputs: list[str], outputs: list[str]) -> FakeEngine:
        return MethodRuntime(self, inputs)(plan, builder, inputs, outputs)

    def asked(self, name: str) -> None:
        self.enqueued += name == "enqueue"
        failure = self.failure
        if failure is None or failure.function != name:
            return
        self.position += 1
        if self.position == failure.position + 1 and failure.error == "collect":
            gc.collect()
        elif self.position == failure.position + 1:
            self.failed.append(getattr(builtins, str(failure.error))("made to fail"))
            raise self.failed[-1]  # type: ignore[misc]


class MethodRuntime(FakeRuntime):
    """One engine's: its inputs come in any order, a method's by name and number, and perhaps a buffer."""

    def __init__(self, engines: Engines, inputs: list[str]) -> None:
        name = next(name for name in map(_method_of, inputs) if name)
        method = METHODS[name]
        int64 = "int32" if engines.narrows_int64 else "int64"
        order = [int(each.split("_")[1]) if _method_of(each) else len(method.inputs) for each in inputs]
        types = [*(int64 if each == "int64" else each for each in method.inputs), "float32"]
        profiles: list[list[list[Range]]] = []
        for low, high in method.spans:
            rows, width = (low, high, high), (WIDTH, WIDTH, WIDTH)
            own = [[rows], [(POSITIONS,) * 3, width]] if method.has_state else [[rows, width]]
            profiles.append([[[rows, width], *own][number] for number in order])
        function: Any = {"plain": oracle.plain, "typed": oracle.typed}.get(name, oracle.cached)

        def compute(*arrays: Array) -> list[Array]:
            return function(*(array for _, array in sorted(zip(order, arrays, strict=True), key=lambda pair: pair[0])))

        returned = {"plain": ["float32"], "typed": ["float32", int64]}.get(name, ["float32", "float32"])
        super().__init__(engines.cuda, profiles, [types[number] for number in order] + returned, compute)
        self.engines = engines

    def __call__(self, plan: memoryview, builder: str, inputs: list[str], outputs: list[str]) -> FakeEngine:
        engine = super().__call__(plan, builder, inputs, outputs)
        engine.narrows_int64 = self.engines.narrows_int64
        return engine

    def asked(self, name: str, *arguments: Any) -> None:
        self.engines.asked(name)


class FakeDevice:
    def __init__(self, cudart: str) -> None:
        os.environ["ETRT_CUDART"] = cudart
        self.cuda = WatchedCuda(Path(cudart))
        self.cuda.reset()
        if not _native.device_memory_available():
            raise RuntimeError("the fake CUDA can't be used")
        self.engines = Engines(self.cuda)
        _native.register_engine_runtime("tensorrt_rtx", self.engines)
        self.streams = [0, *(self.cuda.stream() for _ in range(1, STREAMS)), 0]
        self.failure: Failure | None = None
        self._numbers = itertools.count()

    def begin(self, narrows_int64: bool) -> None:
        self.cuda.reset()
        self.cuda.take_log()
        self.engines.narrows_int64 = narrows_int64
        self.engines.enqueued = 0

    def memory(self, values: Array, place: str) -> FakeMemory:
        return FakeMemory(self.cuda, values, _KINDS[place])

    def peek(self, address: int, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.cuda.at(address, shape, dtype)

    def stream(self, number: int) -> int:
        return self.streams[number]

    def replace_stream(self, number: int) -> None:
        old = self.streams[number]
        self.cuda.library.fake_cuda_stream_destroy(ctypes.c_void_p(old))
        again = next(self._numbers) % 2
        create = self.cuda.library.fake_cuda_stream_create_again
        create.restype = ctypes.c_void_p
        self.streams[number] = create(ctypes.c_void_p(old)) if again else self.cuda.stream()

    def run(self, number: int) -> None:
        self.cuda.run(self.streams[number])

    def run_own(self) -> None:
        self.cuda.run(2)

    def busy(self, number: int) -> None:
        self.cuda.library.cudaFree(None)  # as a library of the caller's has the device's context
        self.cuda.enqueue(self.streams[number], lambda: None)

    def begin_capture(self, number: int) -> None:
        assert self.cuda.library.cudaStreamBeginCapture(ctypes.c_void_p(self.streams[number]), 0) == 0

    def end_capture(self, number: int) -> int:
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        stream = ctypes.c_void_p(self.streams[number])
        if self.cuda.library.cudaStreamEndCapture(stream, ctypes.byref(graph)) != 0:
            self.cuda.faults.append("a capture was broken")
            return 0
        assert self.cuda.library.cudaGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)) == 0
        self.cuda.library.cudaGraphDestroy(graph)
        return made.value or 0

    def launch(self, graph: int, number: int) -> None:
        stream = ctypes.c_void_p(self.streams[number])
        assert self.cuda.library.cudaGraphLaunch(ctypes.c_void_p(graph), stream) == 0

    def end_graph(self, graph: int) -> None:
        if graph:
            self.cuda.destroy(graph)

    def fail(self, failure: Failure) -> None:
        self.failure = failure
        if failure.where == "cuda":
            self.cuda.library.fake_cuda_fail(
                failure.function.encode(), failure.position, int(failure.error), int(failure.late)
            )
        elif failure.where == "memory":
            self.cuda.library.fake_cuda_set_free_memory(ctypes.c_size_t(failure.position))
        else:
            self.engines.failure, self.engines.position, self.engines.failed = failure, 0, []

    def stop_failing(self) -> list[BaseException | str]:
        failure, self.failure = self.failure, None
        assert failure is not None
        if failure.where == "engine":
            self.engines.failure, failed = None, self.engines.failed
            self.engines.failed = []
            return [each.with_traceback(None) if isinstance(each, BaseException) else each for each in failed]
        if failure.where == "memory":
            self.cuda.library.fake_cuda_set_free_memory(ctypes.c_size_t(1 << 29))
            return ["no memory"]
        happened = self.cuda.library.fake_cuda_failed()
        self.cuda.library.fake_cuda_fail(b"", 0, 0, 0)
        return [failure.function] if happened else []

    def enqueued(self) -> int:
        return self.engines.enqueued

    def faults(self) -> Several[str]:
        found = list(self.cuda.faults)
        self.cuda.faults.clear()
        return found

    def alive(self) -> Any:
        return self.cuda.allocations(), self.cuda.library.fake_cuda_objects()

    def end(self) -> None:
        self.cuda.run(0)
