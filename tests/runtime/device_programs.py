"""Small programs of TensorRT-RTX engines with memory on a device, and what their engines compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import models
import numpy as np
import torch
from export_cases import model_of, rows
from fakes.python_engine import Array, Compute, FakeCuda, FakeRuntime, Range, double

from executorch_tensorrt import Input, Module, export

Load = Callable[..., tuple[Module, FakeRuntime]]
"""The fixture `load`: from a `Case`, and options of `Module`."""

Where = Literal["device", "second device", "host_io", "host"]
_OPTIONS: dict[Where, dict[str, Any]] = {
    "device": {"device": "cuda:0"},
    "second device": {"device": "cuda:1"},
    "host_io": {"device": "cuda:0", "host_io": True},
    "host": {},
}

_ROWS: list[list[list[Range]]] = [[[(1, 2, 4), (4, 4, 4)]], [[(5, 8, 12), (4, 4, 4)]]]


@dataclass(frozen=True)
class Case:
    """A program, and what the fake of its engines needs."""

    program: bytes
    profiles: list[list[list[Range]]]
    types: list[str]
    compute: Compute

    def runtime(self, cuda: FakeCuda) -> FakeRuntime:
        return FakeRuntime(cuda, self.profiles, self.types, self.compute)


def _exported(model: Callable[..., Any], inputs: Sequence[Input], where: Where = "device", **options: Any) -> bytes:
    return export(model_of(model), inputs, engine="tensorrt_rtx", **_OPTIONS[where], **options).buffer


@cache
def doubled(where: Where = "device") -> Case:
    """float32 [1..4 or 5..12, 4]: twice the input."""
    program = _exported(lambda self, x: x * 2, [rows((1, 2, 4), (5, 8, 12), name="x")], where)
    return Case(program, _ROWS, ["float32", "float32"], double)


@cache
def large(where: Where = "host") -> Case:
    """float32 [1..4 or 5..8192, 4]: twice the input."""
    program = _exported(lambda self, x: x * 2, [rows((1, 2, 4), (5, 8, 8192), name="x")], where)
    return Case(program, [[[(1, 2, 4), (4, 4, 4)]], [[(5, 8, 8192), (4, 4, 4)]]], ["float32", "float32"], double)


@cache
def typed() -> Case:
    """float32 and int64 [1..4 or 5..12, 4]: which are positive, the ints plus one, the floats as bfloat16."""
    shared = {"shared_dims": {0: "rows"}}
    inputs = [
        rows((1, 2, 4), (5, 8, 12), name="x", **shared),
        rows((1, 2, 4), (5, 8, 12), name="ids", dtype="int64", **shared),
    ]
    program = _exported(lambda self, x, ids: (x > 0, ids + 1, x.to(torch.bfloat16)), inputs)
    types = ["float32", "int64", "bool", "int64", "bfloat16"]

    def compute(x: Array, ids: Array) -> list[Array]:
        return [x > 0, ids + 1, (np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16)]

    return Case(program, [2 * profile for profile in _ROWS], types, compute)


@cache
def tail() -> Case:
    """float32 [3..8, 4]: all rows but three, which may be none."""
    program = _exported(lambda self, x: x[3:] * 2, [rows((3, 4, 8), name="x")])
    return Case(program, [[[(3, 4, 8), (4, 4, 4)]]], ["float32", "float32"], lambda x: [x[3:] * 2])


@cache
def two_engines() -> Case:
    """float32 [1..4 or 5..12, 4]: twice the input, sums over rows on the host, twice those."""
    inputs = [rows((1, 2, 4), (5, 8, 12), name="x")]
    program = _exported(lambda self, x: torch.cumsum(x * 2, 0) * 2, inputs, torch_executed_ops=["aten.cumsum.default"])
    return Case(program, _ROWS, ["float32", "float32"], double)


@cache
def cached(where: Where = "device") -> Case:
    """float32 [1 or 2..8, 4] at int64 positions into the engine's own buffer `cache`, float32 [32, 4]: its sum."""
    model, inputs = models.cached_source()
    program = export(model, inputs, engine="tensorrt_rtx", take_over_mutable_buffer=True, **_OPTIONS[where]).buffer
    buffer: list[Range] = [(32, 32, 32), (4, 4, 4)]
    profiles: list[list[list[Range]]] = [[[rows], [rows, (4, 4, 4)], buffer] for rows in [(1, 1, 1), (2, 4, 8)]]

    def compute(positions: Array, x: Array, cache: Array) -> list[Array]:
        after = cache.copy()
        after[positions] = x
        return [after.sum(0), after]

    return Case(program, profiles, ["int64", "float32", "float32", "float32", "float32"], compute)
