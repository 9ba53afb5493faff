"""The sizes that an engine's outputs can have, from those of its inputs and the shape formulas of its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

from executorch_tensorrt.program.blobs import EngineBlob, Span

# Beyond, the runtime refuses to compute; and a formula of an untrusted file must not grow without end.
_LARGEST = 2**63 - 1


def input_spans(engine: EngineBlob, profile: int) -> list[list[Span]] | None:
    """The smallest and largest size of every dim of every input in one optimization profile.

    A static engine has the same sizes in all. None where the engine has no such optimization profile, or alone knows.
    """
    if engine.profiles is not None:
        index = 0 if engine.is_static else profile
        if index >= len(engine.profiles):
            return None
        return [[(low, high) for low, _, high in dims] for dims in engine.profiles[index]]
    return _written_spans(engine, [item.name for item in engine.inputs])


def output_spans(engine: EngineBlob, profile: int) -> list[list[Span]] | None:
    """As `input_spans`, for the outputs; by interval arithmetic."""
    shapes = engine.written_record.get("shapes")
    inputs = input_spans(engine, profile)
    if shapes is None or inputs is None:
        return _written_spans(engine, [item.name for item in engine.outputs])
    try:
        symbols = [_solve(inputs, symbol) for symbol in engine.written_record["symbols"]]
        return [[_span(dim, symbols) for dim in dims] for dims in shapes["outputs"]]
    except ZeroDivisionError:
        return None


def _written_spans(engine: EngineBlob, names: Sequence[str]) -> list[list[Span]] | None:
    shapes = [engine.shapes.get(name) for name in names]
    if any(shape is None or min(shape, default=0) < 0 for shape in shapes):
        return None
    return [[(dim, dim) for dim in shape or ()] for shape in shapes]


def _solve(inputs: Sequence[Sequence[Span]], symbol: Mapping[str, int]) -> Span:
    low, high = (end - symbol["offset"] for end in inputs[symbol["input"]][symbol["dim"]])
    scale = symbol["scale"]
    return (-(-low // scale), high // scale) if scale > 0 else (-(-high // scale), low // scale)


def _span(dim: int | str | list[Any], symbols: Sequence[Span]) -> Span:
    if isinstance(dim, int):
        return dim, dim
    if isinstance(dim, str):
        return symbols[int(dim[1:])]
    operator, *operands = dim
    low, high = reduce(_OPERATIONS[operator], (_span(operand, symbols) for operand in operands))
    return _bounded(low), _bounded(high)


def _bounded(size: int) -> int:
    return max(-_LARGEST, min(size, _LARGEST))


def _corners(operate: Callable[[int, int], int]) -> Callable[[Span, Span], Span]:
    """For an operation whose extremes lie at the ends of its operands."""

    def spans(one: Span, other: Span) -> Span:
        values = [operate(a, b) for a, b in product(one, other)]
        return min(values), max(values)

    return spans


def _mod(one: Span, other: Span) -> Span:
    if other[0] == other[1] and one[0] // other[0] == one[1] // other[0]:
        return one[0] % other[0], one[1] % other[0]
    return 0, min(other[1] - 1, one[1]) if one[0] >= 0 else other[1] - 1


def _positive(operate: Callable[[Span, Span], Span]) -> Callable[[Span, Span], Span]:
    def spans(one: Span, other: Span) -> Span:
        if other[0] <= 0:
            raise ZeroDivisionError
        return operate(one, other)

    return spans


_OPERATIONS: Mapping[str, Callable[[Span, Span], Span]] = {
    "add": _corners(lambda a, b: a + b),
    "mul": _corners(lambda a, b: a * b),
    "floordiv": _positive(_corners(lambda a, b: a // b)),
    "mod": _positive(_mod),
    "min": _corners(min),
    "max": _corners(max),
}
