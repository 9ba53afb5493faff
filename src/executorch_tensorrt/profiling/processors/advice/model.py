"""What lists of optimization profiles would cost, for `advice`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from executorch_tensorrt.profiling.processors.advice.calls import Calls
from executorch_tensorrt.profiling.processors.advice.groups import Points, distances
from executorch_tensorrt.profiling.processors.advice.ranges import Box, cost_of, served_by
from executorch_tensorrt.profiling.processors.advice.tuning import ASSUMED, Medians
from executorch_tensorrt.profiling.processors.advice.variables import distinct
from executorch_tensorrt.profiling.processors.times import Times, share_of

_WORTH = 0.02  # of the modelled time: another profile has to gain that


@dataclass(frozen=True)
class ProposedProfile:
    """One entry of the proposed list.

    Attributes:
        ranges: (min, opt, max) of each variable.
        calls: how many of the recorded calls automatic selection would send there.
        share: of all calls, 0 to 1.
        time_share: of the time of all calls, 0 to 1.
        recorded: what those calls took.
        expected_us: what such a call would take on average; None where that cannot be estimated.
    """

    ranges: Box
    calls: int
    share: float
    time_share: float
    recorded: Times
    expected_us: float | None


@dataclass(frozen=True)
class Choice:
    """A list of optimization profiles, in short.

    Attributes:
        profiles: how many.
        distance: doublings between a call's size and the opt of its profile, on average over the time of the calls.
        expected_us: what a call would take on average; None where that cannot be estimated.
    """

    profiles: int
    distance: float
    expected_us: float | None


@dataclass(frozen=True)
class Model:
    """A call takes base * (1 + per_doubling * distance), with the distance in doublings from the opt of its profile.

    Attributes:
        points: recorded sizes, with the sum of the bases of their calls as weight.
        per_doubling: None where the recording does not tell.
    """

    points: Points
    per_doubling: float | None

    def choice(self, boxes: Sequence[Box]) -> Choice:
        whole = float(self.points.weights.sum())
        distance = cost_of(boxes, self.points) / whole
        calls = int(self.points.counts.sum())
        known = self.per_doubling is not None
        return Choice(len(boxes), distance, whole * self._factor(distance) / calls if known else None)

    def saved(self, before: Choice, after: Choice) -> float:
        return 1 - self._factor(after.distance) / self._factor(before.distance)

    def enough(self, choices: Sequence[Choice], least: int) -> int:
        """The index of the list to take: the next one has to be worth it."""
        at = next((index for index, choice in enumerate(choices) if choice.profiles >= least), len(choices) - 1)
        while at + 1 < len(choices) and self.saved(choices[at], choices[at + 1]) >= _WORTH:
            at += 1
        return at

    def profile(self, index: int, boxes: Sequence[Box], calls: Calls) -> ProposedProfile:
        wall = calls.wall_us[served_by(boxes, calls.sizes) == index]
        mine = served_by(boxes, self.points.sizes) == index
        opts = np.array([[span[1] for span in boxes[index]]])
        factors = self._factor(distances(self.points.sizes[mine], opts))
        known = self.per_doubling is not None and len(wall) > 0
        return ProposedProfile(
            ranges=boxes[index],
            calls=len(wall),
            share=len(wall) / len(calls.wall_us),
            time_share=share_of(float(wall.sum()), float(calls.wall_us.sum())),
            recorded=Times.of(wall.tolist()),
            expected_us=float(self.points.weights[mine] @ factors) / len(wall) if known else None,
        )

    def _factor(self, distance: Any) -> Any:
        return 1 + (ASSUMED if self.per_doubling is None else self.per_doubling) * distance


def points_of(medians: Medians, per_doubling: float) -> Points:
    """Each size once."""
    sizes, groups = distinct(medians.sizes)
    bases = medians.counts * medians.wall_us / (1 + per_doubling * np.nan_to_num(medians.distances))
    weights: Any = np.bincount(groups, bases)
    return Points(sizes, weights, np.bincount(groups, medians.counts).astype(np.int64))
