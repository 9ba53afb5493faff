"""Groups of recorded sizes that lie close together, for `advice`.

Sizes far from the one that a profile is tuned for cost time. So the sum of each call's time times its distance from the
middle of its group, in doublings, is made as small as it can be: along one size exactly, by dynamic programming over
the sorted sizes; with several, along the best of a few orders of the calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from executorch_tensorrt.profiling.processors.advice.variables import Floats, Ints, columns_of

_MAX_CUTS = 64


@dataclass(frozen=True)
class Points:
    """Recorded sizes.

    Attributes:
        sizes: a row for each, a column per variable.
        weights: of each: the time of its calls.
        counts: how many calls.
    """

    sizes: Ints
    weights: Floats
    counts: Ints

    @cached_property
    def logs(self) -> Floats:
        """Of the sizes, to base 2."""
        return np.log2(self.sizes)


def distances(sizes: Ints, opts: Ints) -> Floats:
    """How far each row of sizes is from that of opts, in doublings, over all variables."""
    return np.abs(np.log2(sizes) - np.log2(opts)).sum(axis=1)


def orders_of(points: Points, alone: int | None) -> Iterator[Ints]:
    """Along each variable, and along the product of all."""
    columns = columns_of(points.sizes)
    work = points.logs.sum(axis=1)
    first = np.zeros(len(work)) if alone is None else columns[alone] > 1
    for index, column in enumerate(columns):
        yield np.lexsort((*columns[:index], *columns[index + 1 :], column, first))
    if len(columns) > 1:
        yield np.lexsort((*columns, work, first))


def groups_along(points: Points, order: Ints, count: int, alone: int | None) -> list[list[Ints]]:
    """For each number of groups, runs of the order whose spreads have the smallest sum."""
    ones = 0 if alone is None else int(np.count_nonzero(points.sizes[:, alone] == 1))
    cuts = _cuts(points.weights[order], ones)
    spreads = np.full((len(cuts), len(cuts)), np.inf)
    for a, begin in enumerate(cuts):
        spreads[a, a] = 0.0
        for b in range(a + 1, len(cuts)):
            if not begin < ones < cuts[b]:
                spreads[a, b] = _spread(points, order[begin : cuts[b]])
    plans, choices = [[order]], list[Ints]()
    total = spreads[0]
    for _ in range(1, count):
        table = total[:, None] + spreads
        choices.append(table.argmin(axis=0))
        total = table.min(axis=0)
        ends = [len(cuts) - 1]
        for choice in reversed(choices):
            ends.append(int(choice[ends[-1]]))
        marks = [cuts[end] for end in (*ends, 0)]
        plans.append([order[begin:end] for end, begin in pairwise(marks) if begin < end])
    return plans


def _cuts(weights: Floats, ones: int) -> list[int]:
    """Places to cut at: all between two points, or as many as divide the weight evenly."""
    places = list(range(1, len(weights)))
    if len(places) > _MAX_CUTS:
        marks = np.linspace(0, float(weights.sum()), _MAX_CUTS + 2)[1:-1]
        places = np.searchsorted(np.cumsum(weights), marks).tolist()
    return sorted({0, ones, *places, len(weights)})


def middle_of(points: Points, members: Ints) -> Ints:
    """The weighted median of each variable."""
    sizes, weights = points.sizes[members], points.weights[members]
    found: list[int] = []
    for column in columns_of(sizes):
        order = np.argsort(column, kind="stable")
        reached = np.cumsum(weights[order])
        found.append(int(column[order[np.searchsorted(reached, reached[-1] / 2)]]))
    return np.array(found)


def _spread(points: Points, members: Ints) -> float:
    away = np.abs(points.logs[members] - np.log2(middle_of(points, members)))
    return float((points.weights[members] @ away).sum())
