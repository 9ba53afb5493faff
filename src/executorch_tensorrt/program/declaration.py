"""What a program says about the inputs of its methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from executorch_tensorrt.program.reader import Method, Value
from executorch_tensorrt.records import MismatchError, build, parse

_PROFILES_SPEC = "etrt.profiles"


@dataclass(frozen=True)
class Dim:
    """One dim of a method's input: its size is `scale` times that of a shape symbol, plus `offset`.

    Attributes:
        symbol: dims with one symbol move together; empty for a static dim, whose size is `offset`.
        scale: not 0.
        offset: see above.
    """

    symbol: str
    scale: int
    offset: int


@dataclass(frozen=True)
class MethodInput:
    """What a program says about an input of a method.

    Attributes:
        name: of the argument; empty where the exporter did not record it.
        dtype: of a tensor, such as "float32"; else the kind, such as "int".
        dims: of a tensor, in order.
        largest: the shape that memory is planned for.
    """

    name: str
    dtype: str
    dims: list[Dim]
    largest: list[int]


@dataclass(frozen=True)
class Declaration:
    """What a program says about the inputs of a method.

    Attributes:
        method: the method.
        inputs: all of them, in order.
        profiles: per optimization profile, (min, opt, max) by symbol. Empty where the exporter did not record them;
            every dim of a dynamic input has a symbol of its own then.
    """

    method: str
    inputs: list[MethodInput]
    profiles: list[dict[str, tuple[int, int, int]]]


@dataclass(frozen=True)
class _RecordedInput:
    name: str
    dims: list[Any]


@dataclass(frozen=True)
class _Record:
    """The compile spec of this project's exporter."""

    profiles: list[dict[str, tuple[int, int, int]]]
    inputs: list[_RecordedInput]


def declare(method: Method) -> Declaration:
    """The inputs of a method: what the exporter recorded, else what memory is planned for."""
    specs = [dict(delegate.compile_specs) for delegate in method.delegates]
    for spec in specs:
        if _PROFILES_SPEC in spec:
            try:
                return _recorded(method, build(_Record, parse(spec[_PROFILES_SPEC])))
            except ValueError:  # of a later version, or damaged
                break
    return Declaration(method.name, [_planned(item, k) for k, item in enumerate(method.inputs)], [])


def _recorded(method: Method, record: _Record) -> Declaration:
    named = iter(record.inputs)
    inputs: list[MethodInput] = []
    for value in method.inputs:
        if value.kind != "tensor":
            inputs.append(MethodInput("", value.kind, [], []))
            continue
        item = next(named, None)
        if item is None or len(item.dims) != len(value.sizes):
            raise MismatchError(item, f"an input of rank {len(value.sizes)}")
        inputs.append(MethodInput(item.name, value.dtype, [_dim(dim) for dim in item.dims], list(value.sizes)))
    return Declaration(method.name, inputs, record.profiles)


def _dim(written: Any) -> Dim:
    if type(written) is int:
        return Dim("", 1, written)
    symbol, scale, offset = build(tuple[str, int, int], written)
    if not symbol or not scale:
        raise MismatchError(written, "a symbol, a scale and an offset")
    return Dim(symbol, scale, offset)


def _planned(value: Value, position: int) -> MethodInput:
    if value.kind != "tensor":
        return MethodInput("", value.kind, [], [])
    dims = [
        Dim(f"{position}.{axis}", 1, 0) if value.dynamic else Dim("", 1, size) for axis, size in enumerate(value.sizes)
    ]
    return MethodInput("", value.dtype, dims, list(value.sizes))
