"""Times of one thing over many calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from executorch_tensorrt.profiling.session import Event, Run, Session

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Times:
    """How long something took, over its calls, in microseconds. All zero where there was no call.

    Attributes:
        count: how many calls.
        median_us: as the other percentiles, interpolated between calls.
        p90_us: what nine of ten calls stay below.
        p99_us: what 99 of 100 stay below.
        minimum_us: the shortest.
        maximum_us: the longest.
        total_us: the sum.
    """

    count: int
    median_us: float
    p90_us: float
    p99_us: float
    minimum_us: float
    maximum_us: float
    total_us: float

    @classmethod
    def of(cls, durations_us: Sequence[float]) -> Times:
        """From durations in microseconds."""
        if not durations_us:
            return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        median, p90, p99 = (float(value) for value in np.percentile(durations_us, (50, 90, 99)))
        return cls(len(durations_us), median, p90, p99, min(durations_us), max(durations_us), float(sum(durations_us)))

    @property
    def mean_us(self) -> float:
        """0 where there was no call."""
        return self.total_us / self.count if self.count else 0.0


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """Items by what they have in common, both in order."""
    found: dict[Key, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def share_of(part: float, whole: float) -> float:
    """0 to 1; 0 where there is no whole."""
    return min(part / whole, 1.0) if whole > 0 else 0.0


def host_us(run: Run) -> float:
    """Host time of the whole call; 0 where it was not kept."""
    return sum(event.duration_us for event in run.events if event.kind == "method")


def host_us_by_method(session: Session) -> dict[str, float]:
    """Host time of all runs of each method."""
    totals: dict[str, float] = {}
    for run in session.runs:
        totals[run.method] = totals.get(run.method, 0.0) + host_us(run)
    return totals


def delegate_calls(events: Iterable[Event]) -> list[Event]:
    """ExecuTorch's spans around delegates, in order of their start."""
    return sorted((event for event in events if event.kind == "call"), key=lambda event: event.start_us)


def methods_of(session: Session) -> list[str]:
    """The methods that ran, in order."""
    return list(dict.fromkeys(run.method for run in session.runs))
