"""The methods of the program that random sequences call, in plain NumPy.

All numbers are small integers, so that float32 is exact whatever the order of additions, and TF32 is, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Span = tuple[int, int]

WIDTH = 4
POSITIONS = 32
LARGEST = 1000
"""What an input may hold: TF32 has integers up to 2048, and a bias is added."""

_SIGNS = np.array([1, -1, -1, 1], np.float32)
_ORDER = np.array([2, 0, 3, 1])
BIAS = np.array([1, -2, 3, 0], np.float32)
MIX = np.zeros((WIDTH, WIDTH), np.float32)
MIX[_ORDER, np.arange(WIDTH)] = _SIGNS


@dataclass(frozen=True)
class Method:
    """Dim 0 of every input is the number of rows; `spans` has its smallest and largest for each profile."""

    spans: tuple[Span, ...]
    inputs: tuple[str, ...]
    has_state: bool = False

    def fits(self, profile: int, rows: int) -> bool:
        return self.spans[profile][0] <= rows <= self.spans[profile][1]

    @property
    def most_rows(self) -> int:
        return max(high for _, high in self.spans)


METHODS = {
    "plain": Method(((1, 4), (3, 12)), ("float32",)),
    "typed": Method(((1, 4), (3, 12)), ("float32", "int64")),
    "decode": Method(((1, 1),), ("float32", "int64"), has_state=True),
    "prefill": Method(((1, 1), (2, 8)), ("float32", "int64"), has_state=True),
}


def plain(x: Array) -> list[Array]:
    return [x @ MIX + BIAS]


def typed(x: Array, ids: Array) -> list[Array]:
    return [x + ids.astype(np.float32), ids + 3]


def cached(rows: Array, positions: Array, cache: Array) -> list[Array]:
    """The sum over the cache of all positions, and the cache after it."""
    after = cache.copy()
    after[positions] = rows
    return [after.sum(0), after]


def floats(rows: int, value: int) -> Array:
    """Numbers that other values of `value` have elsewhere, if at all."""
    return ((np.arange(rows * WIDTH) * 29 + value * 53) % 211 - 100).astype(np.float32).reshape(rows, WIDTH)


def ids(rows: int, value: int) -> Array:
    return ((np.arange(rows * WIDTH) * 31 + value * 59) % 223).astype(np.int64).reshape(rows, WIDTH)


def positions(rows: int, value: int) -> Array:
    """None of them twice."""
    return (value + 7 * np.arange(rows, dtype=np.int64)) % POSITIONS


def argument(method: str, index: int, rows: int, value: int) -> Array:
    if index == 0:
        return floats(rows, value)
    return (positions if METHODS[method].has_state else ids)(rows, value)
