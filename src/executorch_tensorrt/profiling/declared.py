"""What a program says about the inputs of its methods, and what traced calls tell about their shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from executorch_tensorrt import program as pte
from executorch_tensorrt.profiling.records import MismatchError, build
from executorch_tensorrt.profiling.session import Declaration, Dim, MethodInput, Run

_PROFILES_SPEC = "etrt.profiles"
_TO_DEVICE = "et_copy::_h2d_copy.out"


@dataclass(frozen=True)
class _RecordedInput:
    name: str
    dims: list[Any]


@dataclass(frozen=True)
class _Record:
    """The compile spec of this project's exporter."""

    profiles: list[dict[str, tuple[int, int, int]]]
    inputs: list[_RecordedInput]


def declare(method: pte.Method) -> Declaration:
    """The inputs of a method: what the exporter recorded, else what memory is planned for."""
    specs = [dict(delegate.compile_specs) for delegate in method.delegates]
    for spec in specs:
        if _PROFILES_SPEC in spec:
            try:
                return _recorded(method, build(_Record, json.loads(spec[_PROFILES_SPEC])))
            except (ValueError, RecursionError):  # of a later version, or damaged
                break
    return Declaration(method.name, [_planned(item, k) for k, item in enumerate(method.inputs)], [])


def _recorded(method: pte.Method, record: _Record) -> Declaration:
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


def _planned(value: pte.Value, position: int) -> MethodInput:
    if value.kind != "tensor":
        return MethodInput("", value.kind, [], [])
    dims = [
        Dim(f"{position}.{axis}", 1, 0) if value.dynamic else Dim("", 1, size) for axis, size in enumerate(value.sizes)
    ]
    return MethodInput("", value.dtype, dims, list(value.sizes))


def shape_finder(method: pte.Method, declaration: Declaration) -> Callable[[Run], Run]:
    """A function that adds the shapes of the method's inputs to a run, from those that engines traced.

    An engine's input is one of the method's where the program passes it on as it is. A run is left as it is where the
    shape of any input does not follow.
    """
    passed = dict(enumerate(list(_passed(method, step)) for step in range(len(method.instructions))))
    dtypes = [item.dtype for item in declaration.inputs]

    def found(run: Run) -> Run:
        known: dict[int, Sequence[int]] = {}
        for event in run.events:
            if event.kind == "delegate":
                traced = zip(passed.get(event.instruction, []), _shapes(event.metadata.get("shapes")), strict=False)
                known.update((position, shape) for position, shape in traced if position >= 0)
        try:
            sizes = symbol_sizes(declaration, known)
            shapes = [_shape(item, sizes) for item in declaration.inputs]
        except (ValueError, KeyError):
            return run
        return replace(run, shapes=shapes, dtypes=dtypes)

    return found


def _passed(method: pte.Method, step: int) -> Iterator[int]:
    """For each argument of an instruction, which input of the method it is; -1 for none."""
    origin = {value.index: k for k, value in enumerate(method.inputs)}
    for earlier in method.instructions[:step]:
        if earlier.name == _TO_DEVICE and earlier.arguments[0] in origin:
            origin[earlier.arguments[-1]] = origin[earlier.arguments[0]]
    return (origin.get(index, -1) for index in method.instructions[step].arguments)


def _shapes(traced: Any) -> Sequence[list[int]]:
    try:
        return build(list[list[int]], traced)
    except MismatchError:
        return []


def _shape(item: MethodInput, sizes: Mapping[str, int]) -> list[int]:
    return [dim.scale * sizes[dim.symbol] + dim.offset if dim.symbol else dim.offset for dim in item.dims]


def symbol_sizes(declaration: Declaration, shapes: Mapping[int, Sequence[int]]) -> dict[str, int]:
    """The sizes of shape symbols in a call, from the shapes of some of the method's inputs, by position.

    Raises:
        ValueError: a shape has another rank than its input.
    """
    sizes: dict[str, int] = {}
    for position, shape in shapes.items():
        dims = declaration.inputs[position].dims
        if len(dims) != len(shape):
            raise ValueError(f"input {position}: got {len(shape)} dims, allowed {len(dims)}")
        for dim, size in zip(dims, shape, strict=True):
            if dim.symbol:
                sizes.setdefault(dim.symbol, (size - dim.offset) // dim.scale)
    return sizes
