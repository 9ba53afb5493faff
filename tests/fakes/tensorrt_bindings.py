"""A stand-in for NVIDIA's Python bindings of TensorRT, where no GPU is, in the generations of their runtime API.

It has the names that each release has for loading and running plans, and records calls in order. It computes nothing:
its plans are the bytes `PLAN`, an output's shape is the first input's, and a call fails where a test names it in
`failing`. It does not check memory, streams or the order of calls, as TensorRT does. It was written after the bindings'
documentation and source; of what TensorRT answers, that of 8.6 and of TensorRT-RTX alone was ever seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

PLAN = b"a plan"

Range = tuple[int, int, int]


class Mode(Enum):
    INPUT = 1
    OUTPUT = 2


class Location(Enum):
    DEVICE = 0
    HOST = 1


class Format(Enum):
    LINEAR = 0
    CHW4 = 3


class Strategy(Enum):
    STATIC = 0
    USER_MANAGED = 2


@dataclass
class Tensor:
    """An input or output; `ranges` has those of its dims per optimization profile, and is empty if all are static."""

    mode: Mode
    shape: tuple[int, ...]
    dtype: str = "FLOAT"
    ranges: list[list[Range]] = field(default_factory=list[list[Range]])
    is_shape: bool = False
    location: Location = Location.DEVICE
    depends_on_values: bool = False
    formats: tuple[Format, Format] = (Format.LINEAR, Format.LINEAR)


def tensors() -> dict[str, Tensor]:
    """The engine of the tests: two inputs, one of them static, and an output, over two optimization profiles."""
    rows = [[(1, 1, 4), (8, 8, 8)], [(1, 64, 128), (8, 8, 8)]]
    return {
        "y": Tensor(Mode.OUTPUT, (-1, 8)),
        "x": Tensor(Mode.INPUT, (-1, 8), ranges=rows),
        "scale": Tensor(Mode.INPUT, ()),
    }


class FakeTensorRT:
    """The module `tensorrt` of a release, in `module`.

    Attributes:
        calls: what was called, in order, as (name, arguments).
        failing: the names of calls that fail, and what TensorRT logs then.
        layers: what a profiler is told.
    """

    def __init__(self, version: str, io: dict[str, Tensor] | None = None) -> None:
        self.release = tuple(int(part) for part in version.split(".")[:2])
        self.io = tensors() if io is None else io
        self.calls: list[tuple[Any, ...]] = []
        self.failing: dict[str, str] = {}
        self.layers = [("linear", 0.5), ("relu", 0.25)]
        types = ("FLOAT", "INT32") if self.release < (10, 0) else ("FLOAT", "INT32", "INT64")
        self.log: Any = None
        self.module = SimpleNamespace(
            __version__=version,
            ILogger=type("ILogger", (), {}),
            IProfiler=type("IProfiler", (), {}),
            Runtime=self._runtime,
            init_libnvinfer_plugins=lambda log, namespace: self.done("init_libnvinfer_plugins"),
            DataType=SimpleNamespace(__members__=dict.fromkeys(types)),
            TensorIOMode=Mode,
            TensorLocation=Location,
            TensorFormat=Format,
        )
        if self.release >= (10, 0):
            self.module.ExecutionContextAllocationStrategy = Strategy

    def done(self, name: str, *arguments: Any) -> bool:
        """Record a call; False if it fails, with what is logged of it."""
        self.calls.append((name, *arguments))
        if name in self.failing:
            self.log.log(SimpleNamespace(name="ERROR"), self.failing[name])
        return name not in self.failing

    def _runtime(self, log: Any) -> Any:
        self.log = log
        if not self.done("Runtime"):
            raise TypeError("factory function returned nullptr")
        return SimpleNamespace(deserialize_cuda_engine=self._deserialize)

    def _deserialize(self, plan: Any) -> Any:
        if bytes(plan) != PLAN:
            self.failing.setdefault("deserialize", "Error Code 1: Serialization (Version tag does not match.)")
        return engine_of(self) if self.done("deserialize") else None


def engine_of(fake: FakeTensorRT) -> Any:
    """An `ICudaEngine` with the names that its release has."""
    io = fake.io
    engine = SimpleNamespace(
        num_io_tensors=len(io),
        num_optimization_profiles=2,
        get_tensor_name=list(io).__getitem__,
        get_tensor_mode=lambda name: io[name].mode,
        get_tensor_shape=lambda name: io[name].shape,
        get_tensor_dtype=lambda name: SimpleNamespace(name=io[name].dtype),
        get_tensor_location=lambda name: io[name].location,
        is_shape_inference_io=lambda name: io[name].is_shape,
        get_tensor_profile_shape=lambda name, profile: list(zip(*io[name].ranges[profile], strict=True)),
    )
    sizes = (256, 1024)
    if fake.release < (10, 0):
        engine.device_memory_size = max(sizes)
        engine.get_tensor_format = lambda name: io[name].formats[0]  # 8.6.0's library ends the process for a profile
        engine.create_execution_context_without_device_memory = lambda: _created(fake)
        return engine
    engine.get_tensor_format = lambda name, profile: io[name].formats[profile]
    engine.create_execution_context = lambda strategy: _created(fake, strategy)
    if fake.release >= (10, 1):
        engine.get_device_memory_size_for_profile_v2 = sizes.__getitem__
    if fake.release < (11, 0):
        engine.get_device_memory_size_for_profile = sizes.__getitem__ if fake.release < (10, 1) else _deprecated
    return engine


def _deprecated(*arguments: Any) -> Any:
    raise AssertionError(f"a deprecated name is used with {arguments}")


def _created(fake: FakeTensorRT, *arguments: Any) -> Any:
    kind = _Context if fake.release < (10, 1) else _SizedContext
    return kind(fake) if fake.done("create_execution_context", *arguments) else None


class _Context:
    """An `IExecutionContext` up to 10.0."""

    def __init__(self, fake: FakeTensorRT) -> None:
        self._fake = fake
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.profiler: Any = None
        self.enqueue_emits_profile = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "device_memory" and self._fake.release < (10, 1):
            self._fake.done(name, value)
        super().__setattr__(name, value)

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        if not self._fake.done("set_optimization_profile_async", profile_index, stream_handle):
            raise RuntimeError("Error in set optimization profile async.")
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = shape
        return self._fake.done("set_input_shape", name, shape)

    def infer_shapes(self) -> list[str]:
        if not self._fake.done("infer_shapes"):
            raise RuntimeError("infer_shapes error code: -1")
        return [name for name, tensor in self._fake.io.items() if tensor.ranges and name not in self._shapes]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        tensor = self._fake.io[name]
        return tensor.shape if tensor.depends_on_values else next(iter(self._shapes.values()))

    def set_tensor_address(self, name: str, memory: int) -> bool:
        return self._fake.done("set_tensor_address", name, memory)

    def execute_async_v3(self, stream_handle: int) -> bool:
        return self._fake.done("execute_async_v3", stream_handle)

    def report_to_profiler(self) -> bool:
        if not self._fake.done("report_to_profiler"):
            return False
        for name, milliseconds in self._fake.layers:
            self.profiler.report_layer_time(name, milliseconds)
        return True


class _SizedContext(_Context):
    """An `IExecutionContext` from 10.1."""

    device_memory = property(_deprecated, _deprecated)

    def set_device_memory(self, memory: int, size: int) -> None:
        self._fake.done("set_device_memory", memory, size)
