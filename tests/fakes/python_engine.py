"""An engine in Python for the fake CUDA runtime of cudart.h, in place of TensorRT's.

It has what the native core asks of `engines.tensorrt.runtime.PlanEngine`. Its plan says nothing: a test gives it the
profiles and types of its program, and a NumPy function that does the work when the stream comes to it. It reads and
writes through the fake's memory, so an address that is wrong ends the process.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Range = tuple[int, int, int]
Compute = Callable[..., Sequence[Array]]

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DEVICE_MEMORY = 2


class CudaArray:
    """What a library such as CuPy gives: memory of a device, with `__cuda_array_interface__`."""

    def __init__(
        self, address: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None = None
    ) -> None:
        data = (address, False)
        self.__cuda_array_interface__ = {
            "data": data, "shape": shape, "typestr": dtype, "strides": strides, "version": 3
        }  # fmt: skip


class DlpackTensor(ctypes.Structure):
    """What a capsule of DLPack holds first."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


def in_capsule(capsule: Any) -> DlpackTensor:
    """The tensor of a capsule, which has to live meanwhile."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DlpackTensor.from_address(get(capsule, b"dltensor"))


class FakeCuda:
    """The fake runtime's controls."""

    def __init__(self, path: Path) -> None:
        self.library: Any = ctypes.CDLL(str(path))
        for name in ("allocate", "at", "stream_create"):
            getattr(self.library, f"fake_cuda_{name}").restype = ctypes.c_void_p
        self.library.fake_cuda_take_log.restype = ctypes.c_char_p
        self._work: dict[int, Callable[[], None]] = {}
        self._call = _CALLBACK(lambda key: self._work[key]())
        self._release = _CALLBACK(lambda key: self._work.pop(key) and None)
        self._keys = itertools.count(1)
        self._owned: list[int] = []

    def reset(self, devices: int = 1) -> None:
        self.library.fake_cuda_reset(devices)

    def array(self, values: Array, device: int = 0) -> CudaArray:
        """A copy on a device."""
        values = np.ascontiguousarray(values)
        address = self.library.fake_cuda_allocate(ctypes.c_size_t(values.nbytes), _DEVICE_MEMORY, device)
        self._owned.append(address)
        self.at(address, values.shape, values.dtype)[...] = values
        return CudaArray(address, values.shape, values.dtype.str)

    def at(self, address: int, shape: Sequence[int], dtype: Any) -> Array:
        """What is in a device's memory, to read and to write."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        place = self.library.fake_cuda_at(ctypes.c_void_p(address), ctypes.c_size_t(size))
        return np.frombuffer((ctypes.c_char * size).from_address(place), dtype).reshape(shape)

    def read(self, array: Any) -> Array:
        """A copy of an array on a device. A `DeviceArray` waits for what it is made by."""
        interface = array.__cuda_array_interface__
        return self.at(interface["data"][0], interface["shape"], interface["typestr"]).copy()

    def peek(self, array: Any) -> Array:
        """A copy of an array on a device, as it is now."""
        capsule = array.__dlpack__(stream=-1)
        return self.at(in_capsule(capsule).data, array.shape, array.dtype).copy()

    def stream(self, device: int = 0) -> int:
        return self.library.fake_cuda_stream_create(device)

    @contextmanager
    def captured(self, stream: int) -> Iterator[list[int]]:
        """Capture a stream in the block, which must not break that; then the list has the graph, to launch."""
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        found: list[int] = []
        assert self.library.cudaStreamBeginCapture(ctypes.c_void_p(stream), 0) == 0
        try:
            yield found
        finally:
            assert self.library.cudaStreamEndCapture(ctypes.c_void_p(stream), ctypes.byref(graph)) == 0
        assert self.library.cudaGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)) == 0
        self.library.cudaGraphDestroy(graph)
        found.append(made.value or 0)

    def launch(self, graph: int, stream: int) -> None:
        """Run a graph."""
        assert self.library.cudaGraphLaunch(ctypes.c_void_p(graph), ctypes.c_void_p(stream)) == 0
        self.run(stream)

    def destroy(self, graph: int) -> None:
        self.library.cudaGraphExecDestroy(ctypes.c_void_p(graph))

    def fail(self, function: str, error: int = 700) -> None:
        """Let the next call of a function fail."""
        self.library.fake_cuda_fail(function.encode(), 0, error, 0)

    def run(self, stream: int) -> None:
        """Let a stream do what is queued."""
        self.library.fake_cuda_run(ctypes.c_void_p(stream))

    def pending(self, stream: int) -> int:
        return self.library.fake_cuda_pending(ctypes.c_void_p(stream))

    def take_log(self) -> list[str]:
        """The calls since the last time."""
        return self.library.fake_cuda_take_log().decode().splitlines()

    def enqueue(self, stream: int, work: Callable[[], None]) -> None:
        """Queue Python code."""
        key = next(self._keys)
        self._work[key] = work
        self.library.fake_cuda_enqueue(ctypes.c_void_p(stream), self._call, ctypes.c_void_p(key), self._release)

    def free(self) -> None:
        """Free what `array` allocated."""
        for address in self._owned:
            self.library.fake_cuda_free(ctypes.c_void_p(address))
        self._owned.clear()

    def allocations(self) -> int:
        """How many blocks of memory are alive."""
        return self.library.fake_cuda_allocations()


def double(x: Array) -> list[Array]:
    """What most engines here compute."""
    return [x * 2]


@dataclass
class FakeRuntime:
    """The runtime of an engine kind, and what its engines were asked.

    Attributes:
        cuda: the device.
        profiles: by profile and input, the range of each dim.
        types: of inputs, then outputs.
        compute: from the inputs to the outputs.
        failing: names of methods that fail, and the exception.
        layers: what a context tells of each.
        calls: names of methods, and their arguments.
    """

    cuda: FakeCuda
    profiles: list[list[list[Range]]]
    types: list[str]
    compute: Compute
    failing: dict[str, BaseException] = field(default_factory=dict[str, BaseException])
    layers: list[tuple[str, float]] = field(default_factory=lambda: [("linear", 0.5), ("relu", 0.25)])
    calls: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def __call__(self, plan: memoryview, builder: str, inputs: list[str], outputs: list[str]) -> FakeEngine:
        self.asked("load", len(plan), builder, inputs, outputs)
        return FakeEngine(self, len(inputs))

    def asked(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        if name in self.failing:
            raise self.failing[name]

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of every call of a method."""
        return [arguments for called, *arguments in self.calls if called == name]  # type: ignore[misc]


def activation_size(profile: int) -> int:
    return 1024 * (profile + 1)


class FakeEngine:
    """See `engines.tensorrt.runtime.PlanEngine`."""

    narrows_int64 = False

    def __init__(self, runtime: FakeRuntime, num_inputs: int) -> None:
        self._runtime = runtime
        self._num_inputs = num_inputs
        self.profiles = runtime.profiles
        self.types = runtime.types

    def activation_size(self, profile: int) -> int:
        self._runtime.asked("activation_size", profile)
        return activation_size(profile)

    def create_context(self, profile: int, collect_layers: bool, stream: int, address: int, size: int) -> FakeContext:
        self._runtime.asked("create_context", profile, collect_layers, stream, address, size)
        return FakeContext(self._runtime, self._num_inputs, profile, collect_layers, (address, size))


class FakeContext:
    """See `engines.tensorrt.runtime.PlanContext`. Memory of an output that is null is not written."""

    def __init__(
        self,
        runtime: FakeRuntime,
        num_inputs: int,
        profile: int,
        collect_layers: bool,
        activations: tuple[int, int],
    ) -> None:
        self._activations = activations
        self._runtime = runtime
        self._activation_size = activation_size(profile)
        self._collect_layers = collect_layers
        self._shapes: list[tuple[int, ...]] = [()] * num_inputs
        self._inputs = [0] * num_inputs
        self._outputs = [0] * (len(runtime.types) - num_inputs)
        self._types = [np.dtype(_NUMPY.get(name, name)) for name in runtime.types]

    def set_activation_memory(self, address: int, size: int) -> None:
        self._runtime.asked("set_activation_memory", address, size)
        self._activations = address, size

    def set_input_shape(self, index: int, shape: tuple[int, ...]) -> None:
        self._runtime.asked("set_input_shape", index, shape)
        self._shapes[index] = shape

    def infer_output_shapes(self) -> list[tuple[int, ...]]:
        self._runtime.asked("infer_output_shapes")
        return [output.shape for output in self._results([np.zeros(*item) for item in self._input_types()])]

    def set_input_address(self, index: int, address: int) -> None:
        self._runtime.asked("set_input_address", index, address)
        self._inputs[index] = address

    def set_output_address(self, index: int, address: int) -> None:
        self._runtime.asked("set_output_address", index, address)
        self._outputs[index] = address

    def enqueue(self, stream: int) -> None:
        self._runtime.asked("enqueue", stream)
        inputs = list(zip(self._inputs, self._input_types(), strict=True))
        outputs = list(self._outputs)
        activations = self._activations

        def work() -> None:
            self._use(activations)
            arguments = [self._runtime.cuda.at(address, *item) for address, item in inputs]
            for address, result in zip(outputs, self._results(arguments), strict=True):
                if address:
                    self._runtime.cuda.at(address, result.shape, result.dtype)[...] = result

        self._runtime.cuda.enqueue(stream, work)

    def take_layers(self) -> list[tuple[str, float]]:
        self._runtime.asked("take_layers")
        assert self._collect_layers
        return self._runtime.layers

    def _use(self, activations: tuple[int, int]) -> None:
        """Work writes its activations: memory that was freed, or is too small, ends the process."""
        address, size = activations
        self._runtime.cuda.at(address, (max(size, self._activation_size),), np.uint8)[[0, -1]] = 0xAC

    def _input_types(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        return list(zip(self._shapes, self._types, strict=False))

    def _results(self, arguments: Sequence[Array]) -> list[Array]:
        types = self._types[len(arguments) :]
        results = self._runtime.compute(*arguments)
        return [np.asarray(result, dtype) for result, dtype in zip(results, types, strict=True)]


# The bits stand for themselves.
_NUMPY = {"bfloat16": "uint16"}
