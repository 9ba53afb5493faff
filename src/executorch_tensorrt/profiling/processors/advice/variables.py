"""The sizes of a method's inputs that vary, for `advice`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from executorch_tensorrt.program.declaration import Declaration, MethodInput

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Range = tuple[int, int, int]
"""min, opt, max."""


@dataclass(frozen=True)
class Variable:
    """A size of a method's inputs that may differ from call to call.

    Attributes:
        name: "ids[1]": the input and axis where it is first found.
        symbols: the shape symbols that stand for it.
        places: (input, axis) of every dim that follows from it.
        today: its range in each of the program's optimization profiles; empty where not recorded.
        largest: what memory is planned for; 0 where not recorded.
    """

    name: str
    symbols: list[str]
    places: list[tuple[int, int]]
    today: list[Range]
    largest: int

    @property
    def accepts(self) -> tuple[int, int] | None:
        """The smallest and largest size that the program takes today, over all its profiles; None if not recorded."""
        return (min(span[0] for span in self.today), max(span[2] for span in self.today)) if self.today else None


def columns_of(sizes: Ints) -> list[Ints]:
    """The sizes of each variable."""
    return [sizes[:, index] for index in range(sizes.shape[1])]


def distinct(rows: Ints) -> tuple[Ints, Ints]:
    """The rows sorted, each once, and for each given row which of them it is."""
    found: Any = np.unique(rows, axis=0, return_inverse=True)
    return found[0], found[1].reshape(-1)


def variables_of(declaration: Declaration, columns: Mapping[str, Ints]) -> list[Variable]:
    """A variable for each symbol that can vary, from its size in every call.

    Without the exporter's word, symbols that always have the same size are one variable.
    """
    found: dict[object, Variable] = {}
    for symbol, column in columns.items():
        one = _variable(declaration, symbol)
        limits = {size for span in one.today for size in (span[0], span[2])} or {one.largest or int(column[0])}
        varies = bool(np.any(column != column[0]))
        if not varies and len(limits | {int(column[0])}) == 1:
            continue
        key = symbol if declaration.profiles or not varies else column.tobytes()
        same = found.get(key)
        if same is not None:
            one = Variable(
                same.name, [*same.symbols, symbol], [*same.places, *one.places], [], min(same.largest, one.largest)
            )
        found[key] = one
    return list(found.values())


def _variable(declaration: Declaration, symbol: str) -> Variable:
    dims = [
        (k, axis, dim)
        for k, item in enumerate(declaration.inputs)
        for axis, dim in enumerate(item.dims)
        if dim.symbol == symbol
    ]
    plain = [(k, axis) for k, axis, dim in dims if (dim.scale, dim.offset) == (1, 0)]
    name = symbol
    if plain:
        k, axis = plain[0]
        name = f"{declaration.inputs[k].name or f'input_{k}'}[{axis}]"
    largest = max((_largest(declaration.inputs[k], axis) for k, axis, _ in dims), default=0)
    today = [profile[symbol] for profile in declaration.profiles if symbol in profile]
    return Variable(name, [symbol], [(k, axis) for k, axis, _ in dims], today, largest)


def _largest(item: MethodInput, axis: int) -> int:
    """The largest size of the symbol of a dim, as far as memory is planned."""
    dim = item.dims[axis]
    return (item.largest[axis] - dim.offset) // dim.scale if item.largest and dim.scale > 0 else 0
