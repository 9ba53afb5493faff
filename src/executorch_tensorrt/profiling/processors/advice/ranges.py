"""Ranges of optimization profiles around groups of recorded sizes, for `advice`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from executorch_tensorrt.profiling.processors.advice.groups import (
    Points,
    distances,
    groups_along,
    middle_of,
    orders_of,
)
from executorch_tensorrt.profiling.processors.advice.variables import Ints, Range


@dataclass(frozen=True)
class Axis:
    """The sizes of one variable.

    Attributes:
        sizes: that were recorded, sorted, each once.
        low, high: what the last profile covers.
        limit: the largest size that the program can take, as far as it is known.
    """

    sizes: Ints
    low: int
    high: int
    limit: int | None

    def around(self, low: int, high: int) -> tuple[int, int]:
        """A range for recorded sizes: one point, or with rounded ends that reach no other recorded size."""
        return (low, low) if low == high else (self._floor(low), self._ceiling(high))

    def _ceiling(self, size: int) -> int:
        above = self.sizes[self.sizes > size]
        highest = int(above[0]) - 1 if above.size else self.limit
        return rounded_up(size) if highest is None else max(size, min(rounded_up(size), highest))

    def _floor(self, size: int) -> int:
        below = self.sizes[self.sizes < size]
        return self._ceiling(int(below[-1])) + 1 if below.size else size


Box = tuple[Range, ...]
"""A range per variable."""


def rounded_up(size: int) -> int:
    """At most an eighth more: 20 -> 20, 37 -> 40, 100 -> 104, 500 -> 512."""
    step = 1 << max(size.bit_length() - 4, 0)
    return -(-size // step) * step


def served_by(boxes: Sequence[Box], sizes: Ints) -> Ints:
    """The first box that holds each row of sizes, as automatic selection has it; -1 where none does."""
    found = np.full(len(sizes), -1, np.int64)
    for index, box in reversed(list(enumerate(boxes))):
        ranges = np.array(box)
        found[np.all((ranges[:, 0] <= sizes) & (sizes <= ranges[:, 2]), axis=1)] = index
    return found


def propose(points: Points, axes: Sequence[Axis], count: int, alone: int | None) -> list[list[Box]]:
    """The best list of profiles with at most 1, 2 and so on to `count` entries, in the order that selection wants.

    Their last entry covers all that the axes say.

    Args:
        points: what was recorded.
        axes: of each variable.
        count: the largest number of profiles.
        alone: a variable whose size 1 is kept apart from its other sizes from two profiles on.
    """
    plans = [groups_along(points, order, count, alone) for order in orders_of(points, alone)]
    # Where every call has size 1, other sizes need a profile that no call tells of.
    spare = alone is not None and bool(np.all(points.sizes[:, alone] == 1))
    best: list[list[Box]] = []
    for number in range(1, count + 1):
        kept = best[-1:] if number > 2 or alone is None else []
        more = spare and number > 1
        groups = [plan[number - 1 - more] for plan in plans]
        candidates = kept + [_boxes(points, one, axes, alone, more) for one in groups]
        best.append(min(candidates, key=lambda boxes: cost_of(boxes, points)))
    return best


def cost_of(boxes: Sequence[Box], points: Points) -> float:
    """The sum of weights times distances from the opt of the profile that serves each point."""
    opts = np.array([[span[1] for span in box] for box in boxes])[served_by(boxes, points.sizes)]
    return float(points.weights @ distances(points.sizes, opts))


def _boxes(points: Points, groups: Sequence[Ints], axes: Sequence[Axis], alone: int | None, spare: bool) -> list[Box]:
    """A box for each group, the tight ones first; the last one, or a spare one, covers everything."""

    def rank(group: Ints) -> tuple[bool, float]:
        largest = points.sizes[group].max(axis=0)
        return alone is not None and bool(largest[alone] > 1), float(np.log2(largest).sum())

    found = [_box(points, group, axes) for group in sorted(groups, key=rank)]
    opts = [opt for _, opt, _ in found[-1]]
    if spare and alone is not None:
        opts[alone] = round(float(axes[alone].high ** 0.5))
    else:
        found.pop()
    last = tuple((axis.low, opt, axis.high) for axis, opt in zip(axes, opts, strict=True))
    used = set(served_by([*found, last], points.sizes).tolist())
    return [*(box for index, box in enumerate(found) if index in used), last]


def _box(points: Points, group: Ints, axes: Sequence[Axis]) -> Box:
    sizes = points.sizes[group]
    ends = zip(sizes.min(axis=0).tolist(), sizes.max(axis=0).tolist(), strict=True)
    spans = [axis.around(low, high) for axis, (low, high) in zip(axes, ends, strict=True)]
    opts: list[int] = middle_of(points, group).tolist()
    return tuple((low, opt, high) for (low, high), opt in zip(spans, opts, strict=True))
