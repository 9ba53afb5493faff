"""Runs as spans in lanes, as a timeline draws them, with the gaps between delegates filled in."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Literal

from executorch_tensorrt.profiling.processors.layers import layer_sources
from executorch_tensorrt.profiling.session import Delegate, Event, Run, Session, Source

MAX_RUNS = 40
MAX_SPANS = 40_000
MAX_SPANS_PER_RUN = 4_000

Lane = Literal["method", "delegates", "operators", "phases", "layers", "device"]
SpanKind = Literal["method", "call", "gap", "operator", "phase", "layer", "other"]

_XNNPACK_RESOLUTION_US = 1.0  # Of its time stamps, which are cut off: neighbours seem to overlap by less than that.

Delegates = dict[tuple[str, int], Delegate]

_LANES: dict[str, Lane] = {"operator": "operators", "phase": "phases", "layer": "layers", "other": "layers"}


@dataclass(frozen=True)
class Span:
    """One bar.

    Attributes:
        name: the delegate's name for its call, else as traced.
        kind: as of `Event`; "gap" is the time between two delegates.
        lane: where it is drawn. Lane "device" has a clock of its own.
        depth: row in the lane; spans of one row do not overlap.
        start_us: microseconds after the run's start.
        duration_us: microseconds.
        instruction: of the method; -1 for the method itself and for gaps.
        sources: operators of the graph it comes from; empty where not recorded.
        metadata: what the delegate said with it; for calls that of `torchtrt.delegate`.
    """

    name: str
    kind: SpanKind
    lane: Lane
    depth: int
    start_us: float
    duration_us: float
    instruction: int = -1
    sources: list[Source] = field(default_factory=list[Source])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def end_us(self) -> float:
        return self.start_us + self.duration_us


@dataclass(frozen=True)
class Timeline:
    """One run.

    Attributes:
        run: the run, without its events.
        roles: what it stands for: "median", "fastest", "slowest" of the runs with its method and profiles.
        spans: in order of lanes, rows and start.
        left_out: how many shorter spans are not among them.
    """

    run: Run
    roles: list[str]
    spans: list[Span]
    left_out: int


@dataclass(frozen=True)
class RunGroup:
    """Runs of one method on the same optimization profiles.

    Attributes:
        method: the method.
        profiles: the optimization profiles, by instruction (as text).
        runs: in order of the capture.
        typical, fastest, slowest: of `runs`, by wall time; typical is nearest to the median.
    """

    method: str
    profiles: dict[str, int]
    runs: list[Run]
    typical: Run
    fastest: Run
    slowest: Run


@dataclass(frozen=True)
class Timelines:
    """The runs that a page can show.

    Attributes:
        timelines: in order of the capture.
        selected: which of them to show first: the typical run of the first method's largest group. -1 if there is none.
        runs_left_out: how many runs are not among them.
        spans_left_out: how many spans of those that are.
    """

    timelines: list[Timeline]
    selected: int
    runs_left_out: int
    spans_left_out: int


def run_groups(session: Session) -> list[RunGroup]:
    """Runs by method and optimization profiles, in order of the first run of each."""
    grouped: dict[tuple[str, tuple[tuple[str, int], ...]], list[Run]] = {}
    for run in session.runs:
        grouped.setdefault((run.method, tuple(sorted(run.profiles.items()))), []).append(run)
    return [_group(runs) for runs in grouped.values()]


def timelines(
    session: Session,
    *,
    max_runs: int = MAX_RUNS,
    max_spans: int = MAX_SPANS,
    max_spans_per_run: int = MAX_SPANS_PER_RUN,
) -> Timelines:
    """Lays out runs within limits: the telling runs first, and of each run the structure and the longest spans.

    Args:
        session: the session.
        max_runs: how many runs.
        max_spans: of all runs together; runs past it are left out, the first one never.
        max_spans_per_run: of one run.
    """
    delegates = session.delegates_by_place()
    chosen: dict[int, Timeline] = {}
    total = 0
    order = _telling_runs(session)
    for index, roles in order[:max_runs]:
        laid_out = _timeline(delegates, session.runs[index], roles, min(max_spans_per_run, max_spans))
        total += len(laid_out.spans)
        if total > max_spans:
            break
        chosen[index] = laid_out
    shown = [chosen[index] for index in sorted(chosen)]
    return Timelines(
        timelines=shown,
        selected=sorted(chosen).index(order[0][0]) if order else -1,
        runs_left_out=len(session.runs) - len(shown),
        spans_left_out=sum(timeline.left_out for timeline in shown),
    )


def _group(runs: list[Run]) -> RunGroup:
    return RunGroup(
        method=runs[0].method,
        profiles=runs[0].profiles,
        runs=runs,
        typical=_nearest_to_median(runs),
        fastest=min(runs, key=lambda run: run.wall_us),
        slowest=max(runs, key=lambda run: run.wall_us),
    )


def _nearest_to_median(runs: Sequence[Run]) -> Run:
    median = statistics.median(run.wall_us for run in runs)
    return min(runs, key=lambda run: abs(run.wall_us - median))


def _telling_runs(session: Session) -> list[tuple[int, list[str]]]:
    """Places in `session.runs` with their roles: typical ones, the largest group's first, extremes, then the others."""
    place = {id(run): index for index, run in enumerate(session.runs)}
    groups = run_groups(session)
    roles: dict[int, list[str]] = {}
    if groups:
        of_first_method = [group for group in groups if group.method == groups[0].method]
        roles[place[id(max(of_first_method, key=lambda group: len(group.runs)).typical)]] = []
    for group in groups:
        roles.setdefault(place[id(group.typical)], []).append("median")
    for group in groups:
        if len(group.runs) > 1:
            roles.setdefault(place[id(group.slowest)], []).append("slowest")
            roles.setdefault(place[id(group.fastest)], []).append("fastest")
    rest = [index for index in range(len(session.runs)) if index not in roles]
    return [*roles.items(), *((index, []) for index in _spread_out(rest))]


def _spread_out(items: list[int]) -> Iterable[int]:
    """Every item once; any beginning of it is spread over the whole list."""
    seen: set[int] = set()
    step = len(items)
    while step:
        for k in range(step // 2, len(items), step):
            if k not in seen:
                seen.add(k)
                yield items[k]
        step //= 2


def _timeline(delegates: Delegates, run: Run, roles: list[str], limit: int) -> Timeline:
    events = [event for event in run.events if math.isfinite(event.start_us) and math.isfinite(event.duration_us)]
    spans = _call_spans(delegates, run, events)
    spans += _gap_spans(events, spans)
    spans += [_span(delegates, run, event) for event in events if event.kind in _LANES]
    spans += [Span(run.method, "method", "method", 0, e.start_us, e.duration_us) for e in events if e.kind == "method"]
    structure = ("method", "call", "gap", "operator")
    kept = sorted(spans, key=lambda span: (span.kind not in structure, -span.duration_us))[:limit]
    return Timeline(replace(run, events=[]), roles, _in_rows(kept), len(spans) - len(kept))


def _call_spans(delegates: Delegates, run: Run, events: list[Event]) -> list[Span]:
    """Calls of delegates, with what `torchtrt.delegate` says; as long as the call, that event is no bar of its own."""
    calls = [event for event in events if event.kind == "call"]
    said = {event.instruction: event for event in events if event.kind == "delegate"}
    called = {event.instruction for event in calls}
    spans: list[Span] = []
    for event in [*calls, *(event for event in said.values() if event.instruction not in called)]:
        delegate = delegates.get((run.method, event.instruction))
        metadata = said[event.instruction].metadata if event.instruction in said else event.metadata
        name = delegate.name if delegate else event.name
        spans.append(
            Span(name, "call", "delegates", 0, event.start_us, event.duration_us, event.instruction, metadata=metadata)
        )
    return sorted(spans, key=lambda span: span.start_us)


def _gap_spans(events: list[Event], calls: list[Span]) -> list[Span]:
    method = next((event for event in events if event.kind == "method"), None)
    if method is None or not calls:
        return []
    start = Span("start", "method", "method", 0, method.start_us, 0)
    end = Span("end", "method", "method", 0, method.start_us + method.duration_us, 0)
    operators = sorted((e for e in events if e.kind == "operator"), key=lambda event: event.start_us)
    starts = [event.start_us for event in operators]
    gaps: list[Span] = []
    for before, after in pairwise([start, *calls, end]):
        length = after.start_us - before.end_us
        if length > 0:
            within = slice(bisect_left(starts, before.end_us), bisect_left(starts, after.start_us))
            inside = sum(event.duration_us for event in operators[within])
            split = {"operators_us": round(inside, 3), "orchestration_us": round(length - inside, 3)}
            name = f"{before.name} → {after.name}"
            gaps.append(Span(name, "gap", "delegates", 0, before.end_us, length, metadata=split))
    return gaps


def _span(delegates: Delegates, run: Run, event: Event) -> Span:
    delegate = delegates.get((run.method, event.instruction))
    sources: list[Source] = []
    name = event.name
    if event.kind == "layer" and delegate is not None:
        profile = run.profiles.get(str(event.instruction), 0)
        sources = layer_sources(delegate, profile, event.layer_instruction)
    if event.kind == "operator" and delegate is not None:
        name = delegate.name
    lane: Lane = "device" if event.clock == "device" else _LANES[event.kind]
    if event.kind == "other" and delegate is not None and delegate.index < 0:
        lane = "operators"  # The kernel within an operator's call.
    kind: Any = event.kind
    duration = max(event.duration_us, 0.0)
    return Span(name, kind, lane, 0, event.start_us, duration, event.instruction, sources, event.metadata)


def _in_rows(spans: list[Span]) -> list[Span]:
    """Gives spans of a lane that overlap different rows."""
    lanes: tuple[Lane, ...] = ("method", "delegates", "operators", "phases", "layers", "device")
    placed: list[Span] = []
    for lane in lanes:
        busy: list[tuple[float, int]] = []  # ends of rows
        free: list[int] = []
        slack = 1e-3 + (_XNNPACK_RESOLUTION_US if lane == "layers" else 0.0)
        in_lane = [span for span in spans if span.lane == lane]
        for span in sorted(in_lane, key=lambda span: (span.start_us, -span.duration_us)):
            while busy and busy[0][0] - slack <= span.start_us:
                heappush(free, heappop(busy)[1])
            if not span.duration_us and busy:
                depth = 0
            else:
                depth = heappop(free) if free else len(busy)
                heappush(busy, (span.end_us, depth))
            placed.append(replace(span, depth=depth))
    return sorted(placed, key=lambda span: (lanes.index(span.lane), span.depth, span.start_us))


__all__ = ["Lane", "RunGroup", "Span", "SpanKind", "Timeline", "Timelines", "run_groups", "timelines"]
