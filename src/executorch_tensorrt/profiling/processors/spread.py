"""Spread over runs."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from executorch_tensorrt.profiling.processors.times import Times, host_us, methods_of
from executorch_tensorrt.profiling.session import Run, Session


@dataclass(frozen=True)
class RunSpread:
    """Runs of one method with the same input shapes.

    Attributes:
        method: the method.
        shapes: of its inputs, in order.
        profiles: the optimization profiles that those runs used, by instruction (as text).
        runs: their numbers.
        wall: from the caller's side.
        host: ExecuTorch's span of the whole method (Method::execute).
        slowest: number of the run with the largest wall time.
        typical: number of the run whose wall time is nearest to the median.
    """

    method: str
    shapes: list[list[int]]
    profiles: dict[str, int]
    runs: list[int]
    wall: Times
    host: Times
    slowest: int
    typical: int


def spread(session: Session) -> list[RunSpread]:
    """Groups of runs, methods in order, groups in order of their first run."""
    groups: dict[str, list[Run]] = {}
    for run in session.runs:
        groups.setdefault(repr((run.method, run.shapes, run.profiles)), []).append(run)
    order = {method: place for place, method in enumerate(methods_of(session))}
    return sorted(map(_described, groups.values()), key=lambda group: order[group.method])


def typical_run(session: Session, method: str) -> Run:
    """The run of a method whose wall time is nearest to the median of all its runs.

    Raises:
        ValueError: the method did not run.
    """
    runs = [run for run in session.runs if run.method == method]
    if not runs:
        known = ", ".join(f"'{name}'" for name in methods_of(session)) or "none"
        raise ValueError(f"the session has no runs of this method: got '{method:.80}', allowed {known}")
    return _nearest(runs)


def _nearest(runs: list[Run]) -> Run:
    middle = median(run.wall_us for run in runs)
    # Runs whose events were not kept show nothing.
    return min(runs, key=lambda run: (not run.events, abs(run.wall_us - middle)))


def _described(runs: list[Run]) -> RunSpread:
    return RunSpread(
        method=runs[0].method,
        shapes=runs[0].shapes,
        profiles=runs[0].profiles,
        runs=[run.number for run in runs],
        wall=Times.of([run.wall_us for run in runs]),
        host=Times.of([host_us(run) for run in runs if run.events]),
        slowest=max(runs, key=lambda run: run.wall_us).number,
        typical=_nearest(runs).number,
    )
