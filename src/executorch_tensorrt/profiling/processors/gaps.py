"""Time between delegates: operators that run outside of them, and ExecuTorch's own work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from executorch_tensorrt.profiling.processors.times import Times, delegate_calls, host_us_by_method, share_of
from executorch_tensorrt.profiling.session import Delegate, Event, Run, Session


@dataclass(frozen=True)
class OperatorTime:
    """An operator that runs outside delegates.

    Attributes:
        operator: `operator.name` is its kernel, such as "aten::cumsum.out".
        time: host time per run.
        share: of the host time of all runs of its method, 0 to 1.
    """

    operator: Delegate
    time: Times
    share: float


@dataclass(frozen=True)
class Gap:
    """The time from the end of one delegate's call to the begin of the next.

    Attributes:
        method: whose.
        before: the delegate that ended; None for the start of the method.
        after: the delegate that began; None for the end of the method.
        time: host time per run.
        share: of the host time of all runs of the method, 0 to 1.
        operators: what ran in it, in order.
        orchestration: the rest of `time`: ExecuTorch's own work.
    """

    method: str
    before: Delegate | None
    after: Delegate | None
    time: Times
    share: float
    operators: list[OperatorTime]
    orchestration: Times


def gaps(session: Session) -> list[Gap]:
    """Every gap, in order of methods and time."""
    seen: dict[tuple[str, int | None, int | None], _Calls] = {}
    for run in session.runs:
        for before, after, duration, operators in _of_run(run):
            calls = seen.setdefault((run.method, before, after), _Calls())
            calls.whole.append(duration)
            calls.rest.append(max(duration - sum(event.duration_us for event in operators), 0.0))
            for event in operators:
                calls.operators.setdefault(event.instruction, []).append(event.duration_us)
    totals = host_us_by_method(session)
    delegates = session.delegates_by_place()
    found: list[Gap] = []
    for (method, before, after), calls in seen.items():
        time = Times.of(calls.whole)
        operators = [
            OperatorTime(operator, spent, share_of(spent.total_us, totals[method]))
            for instruction, durations in sorted(calls.operators.items())
            if (operator := delegates.get((method, instruction))) is not None
            for spent in (Times.of(durations),)
        ]
        left, right = (None if side is None else delegates.get((method, side)) for side in (before, after))
        share = share_of(time.total_us, totals[method])
        found.append(Gap(method, left, right, time, share, operators, Times.of(calls.rest)))
    return found


@dataclass
class _Calls:
    whole: list[float] = field(default_factory=list[float])
    rest: list[float] = field(default_factory=list[float])
    operators: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


def _of_run(run: Run) -> Iterator[tuple[int | None, int | None, float, list[Event]]]:
    """Instructions before and after, microseconds, and the operators that ran."""
    whole = next((event for event in run.events if event.kind == "method"), None)
    if whole is None:
        return
    operators = sorted((event for event in run.events if event.kind == "operator"), key=lambda event: event.start_us)
    starts = [event.start_us for event in operators]

    def between(begin: float, end: float) -> list[Event]:
        return operators[bisect_left(starts, begin) : bisect_left(starts, end)]

    at, before = whole.start_us, None
    for call in delegate_calls(run.events):
        yield before, call.instruction, max(call.start_us - at, 0.0), between(at, call.start_us)
        at, before = call.start_us + call.duration_us, call.instruction
    end = whole.start_us + whole.duration_us
    yield before, None, max(end - at, 0.0), between(at, end)
