"""What there is in a world, and what must be in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fakes.python_engine import in_capsule
from sequences import oracle
from sequences.device import Device, Memory
from sequences.oracle import METHODS, Array
from sequences.running import FaultError
from sequences.steps import (
    Request,
)

from executorch_tensorrt import (
    EngineState,
    Module,
)


@dataclass
class State:
    state: EngineState
    cache: Array | None = field(default_factory=lambda: np.zeros((oracle.POSITIONS, oracle.WIDTH), np.float32))
    """None if nobody can say."""


@dataclass
class Loaded:
    """A method, and what it was loaded with."""

    request: Request | None
    level: str | None
    graphs: bool


@dataclass
class Place:
    module: Module
    state: State
    options: dict[str, Any]
    loaded: dict[str, Loaded] = field(default_factory=dict[str, Loaded])


@dataclass
class Fixed:
    """An array of the caller's that stays where it is."""

    memory: Memory
    values: Array
    readers: set[int] = field(default_factory=set[int])


@dataclass
class Held:
    """An output that the caller keeps, and what it must hold."""

    array: Any
    expected: Array
    engine: Loaded | None
    stream: int
    ready: bool
    way: str = "array"
    capsule: Any = None

    @property
    def is_feedable(self) -> bool:
        return self.expected.ndim == 2 and self.expected.dtype == np.float32

    def value(self, device: Device | None) -> Array:
        """What it holds now. Nothing may be under way that writes it, unless it waits by itself."""
        if isinstance(self.array, np.ndarray):
            return self.array
        assert device is not None
        if self.capsule is not None:
            return device.peek(in_capsule(self.capsule).data, self.expected.shape, self.expected.dtype)
        return device.peek(self.array.__cuda_array_interface__["data"][0], self.expected.shape, self.expected.dtype)


@dataclass
class CallersGraph:
    graph: Any
    place: Place
    memory: Memory
    rows: int
    held: Held


def expect_equal(got: Array, wanted: Array, what: str) -> None:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise FaultError(f"{what}: got {got.dtype} {got.shape}, wanted {wanted.dtype} {wanted.shape}")
    if not np.array_equal(got, wanted):
        rows = [row for row in range(len(wanted)) if not np.array_equal(got[row], wanted[row])]
        shown = "".join(f"\n  row {row}: got {got[row].tolist()}, wanted {wanted[row].tolist()}" for row in rows[:4])
        raise FaultError(f"{what}: {len(rows)} of {len(wanted)} rows are wrong{shown}")


def profile_of(method: str, rows: int, request: Request | None) -> int | None:
    """The optimization profile that a call uses; None if it is refused."""
    spans = METHODS[method].spans
    if spans[0][0] == spans[-1][1]:  # an engine of fixed shapes heeds no request
        request = "auto"
    wanted = range(len(spans)) if request == "auto" else [request or 0]
    return next((p for p in wanted if isinstance(p, int) and p < len(spans) and METHODS[method].fits(p, rows)), None)


def device_value(device: Device, capsule: Any, expected: Array) -> Array:
    return device.peek(in_capsule(capsule).data, expected.shape, expected.dtype)


def wrong(value: Array, how: str) -> Array:
    if how == "dtype":
        return value.astype(np.float64)
    if how == "rank":
        return value[..., None]
    return np.concatenate([value, value], 1) if how == "width" else value
