"""Optimization profiles for the sizes that a program is called with: how many, which ranges, and what they gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from executorch_tensorrt.profiling.processors.advice.calls import Calls, recorded_calls
from executorch_tensorrt.profiling.processors.advice.model import Choice, Model, ProposedProfile, points_of
from executorch_tensorrt.profiling.processors.advice.notes import basis_of, notes_of
from executorch_tensorrt.profiling.processors.advice.ranges import Axis, Box, propose, rounded_up, served_by
from executorch_tensorrt.profiling.processors.advice.tuning import medians_of, tuning_of
from executorch_tensorrt.profiling.processors.advice.variables import Ints, Variable, columns_of
from executorch_tensorrt.profiling.session import Session

MAX_PROFILES = 4
_DECODE = 0.1  # of the calls: so many with a size of 1 get a profile of their own


@dataclass(frozen=True)
class Advice:
    """What to declare instead of the present optimization profiles.

    Attributes:
        program: the file's name.
        calls: what was recorded; `calls.variables` are what the ranges are of.
        profiles: in the order in which to declare them.
        served: for each recorded call, the index of its profile.
        today: the program's own profiles; None where they are not recorded.
        chosen: the proposed ones.
        choices: the best lists of 1, 2 and so on profiles, as far as more of them serve calls better.
        gain: 1 - expected time / today's, both modelled; None where that cannot be estimated.
        basis: what the gain rests on, or why there is none.
        notes: what a reader has to know.
    """

    program: str
    calls: Calls
    profiles: list[ProposedProfile]
    served: list[int]
    today: Choice | None
    chosen: Choice
    choices: list[Choice]
    gain: float | None
    basis: str
    notes: list[str]


def advise(
    sessions: Sequence[Session],
    method: str | None = None,
    *,
    max_profiles: int = MAX_PROFILES,
    recorded_only: bool = False,
) -> Advice:
    """Optimization profiles for the recorded calls of a method.

    Args:
        sessions: of one program.
        method: may be None where the sessions have one.
        max_profiles: the largest number to propose.
        recorded_only: let the last profile end at the largest recorded sizes, rounded up, and not at what the program
            accepts today.

    Raises:
        ValueError: the sessions do not fit together, do not tell input sizes, or no size can vary.
    """
    if max_profiles < 1:
        raise ValueError(f"max_profiles: got {max_profiles}, allowed 1 or more")
    calls = recorded_calls(sessions, method)
    sized = zip(calls.variables, columns_of(calls.sizes), strict=True)
    axes = [_axis(variable, column, recorded_only) for variable, column in sized]
    medians = medians_of(calls)
    tuning = tuning_of(medians)
    model = Model(points_of(medians, tuning.per_doubling if tuning else 0.0), tuning and tuning.per_doubling)
    alone = _decode(calls.sizes, axes)
    # By their number: where one more gains nothing, the list before comes again.
    plans = list({len(plan): plan for plan in propose(model.points, axes, max_profiles, alone)}.values())
    choices = [model.choice(plan) for plan in plans]
    chosen = model.enough(choices, 1 if alone is None else 2)
    boxes = plans[chosen]
    own = _own_profiles(calls.variables)
    today = model.choice(own) if own else None
    return Advice(
        program=str(sessions[0].program.get("name", "")),
        calls=calls,
        profiles=[model.profile(index, boxes, calls) for index in range(len(boxes))],
        served=served_by(boxes, calls.sizes).tolist(),
        today=today,
        chosen=choices[chosen],
        choices=choices,
        gain=model.saved(today, choices[chosen]) if tuning and today else None,
        basis=basis_of(calls, tuning),
        notes=notes_of(sessions, calls, axes, len(boxes), tuning is not None),
    )


def _axis(variable: Variable, column: Ints, recorded_only: bool) -> Axis:
    sizes = np.unique(column)
    low, high = int(sizes[0]), int(sizes[-1])
    lowest, limit = variable.accepts or (low, variable.largest or None)
    rounded = rounded_up(high) if limit is None else min(rounded_up(high), limit)
    if recorded_only or limit is None:
        return Axis(sizes, low, max(high, rounded), limit)
    return Axis(sizes, min(low, lowest), max(high, limit), limit)


def _decode(sizes: Ints, axes: Sequence[Axis]) -> int | None:
    """The variable whose size 1 is a regime of its own; the one that varies most, if there are several."""
    found = [
        (int(axis.sizes[-1]), axis.high, -index)
        for index, axis in enumerate(axes)
        if axis.high > 1 and np.mean(sizes[:, index] == 1) >= _DECODE
    ]
    return -max(found)[2] if found else None


def _own_profiles(variables: Sequence[Variable]) -> list[Box]:
    """The program's; none where they are not recorded."""
    return list(zip(*(variable.today for variable in variables), strict=False))


__all__ = ["MAX_PROFILES", "Advice", "Choice", "ProposedProfile", "advise"]
