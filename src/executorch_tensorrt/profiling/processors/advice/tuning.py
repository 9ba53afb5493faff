"""What distance from a profile's opt costs, as far as recorded calls tell, for `advice`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from executorch_tensorrt.profiling.processors.advice.calls import Calls
from executorch_tensorrt.profiling.processors.advice.groups import distances
from executorch_tensorrt.profiling.processors.advice.variables import Floats, Ints, distinct

ASSUMED = 0.1
"""How much more a call takes per doubling, where only the number of profiles depends on it."""

FEW_CALLS = 20
"""Fewer calls in all tell nothing."""

_CALLS = 3  # of one size on one profile
_SIZES = 2  # that were recorded on several profiles
_APART = 0.5  # doublings between the distances of one size from two opts
_STEPS = np.linspace(0.0, 2.0, 2001)


@dataclass(frozen=True)
class Tuning:
    """What a doubling between a call's size and the opt of its profile costs.

    Attributes:
        per_doubling: as a part of the time of a call at the opt: 0.1 is 10 % more.
        sizes: how many sizes were compared.
    """

    per_doubling: float
    sizes: int


@dataclass(frozen=True)
class Medians:
    """Calls with the same sizes on the same profile.

    Attributes:
        sizes: a row for each group, a column per variable.
        distances: from the opt of their profile, in doublings; NaN where not recorded.
        wall_us: their median.
        counts: how many calls.
    """

    sizes: Ints
    distances: Floats
    wall_us: Floats
    counts: Ints


def medians_of(calls: Calls) -> Medians:
    """The groups, sorted by size."""
    keys, groups = distinct(np.column_stack([calls.sizes, calls.profiles]))
    counts = np.bincount(groups)
    grouped = np.split(calls.wall_us[np.argsort(groups, kind="stable")], np.cumsum(counts)[:-1])
    wall = [float(np.median(times)) for times in grouped]
    sizes, profiles = keys[:, :-1], keys[:, -1]
    away = np.full(len(keys), np.nan)
    for index, spans in enumerate(zip(*(variable.today for variable in calls.variables), strict=False)):
        used = profiles == index
        away[used] = distances(sizes[used], np.array([[opt for _, opt, _ in spans]]))
    # Times that were not kept count alike.
    return Medians(sizes, away, np.maximum(wall, 1e-3), counts)


def tuning_of(medians: Medians) -> Tuning | None:
    """The cost of a doubling that explains best how the times of a size differ between profiles.

    A call takes base * (1 + cost * distance), with a base of its own for every size. None where fewer than two sizes
    were recorded often enough on profiles with different opts.
    """
    if medians.counts.sum() < FEW_CALLS:
        return None
    usable = (medians.counts >= _CALLS) & ~np.isnan(medians.distances)
    misfits = np.zeros(len(_STEPS))
    compared = 0
    for size in np.unique(medians.sizes[usable], axis=0):
        same = usable & np.all(medians.sizes == size, axis=1)
        away = medians.distances[same]
        if np.ptp(away) < _APART:
            continue
        compared += 1
        left = np.log(medians.wall_us[same])[:, None] - np.log1p(np.outer(away, _STEPS))
        misfits += ((left - left.mean(axis=0)) ** 2).sum(axis=0)
    return Tuning(float(_STEPS[np.argmin(misfits)]), compared) if compared >= _SIZES else None
