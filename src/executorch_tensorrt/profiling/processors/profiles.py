"""What each optimization profile cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from executorch_tensorrt.profiling.processors.times import Times, delegate_calls, grouped
from executorch_tensorrt.profiling.session import Delegate, Session, traced_shapes


@dataclass(frozen=True)
class ShapeCost:
    """Calls with the same shapes.

    Attributes:
        shapes: of the method's inputs.
        time: host time of the delegate's call.
        engine_shapes: of the engine's inputs, where the delegate traced them; else empty.
    """

    shapes: list[list[int]]
    time: Times
    engine_shapes: list[list[int]] = field(default_factory=list[list[int]])


@dataclass(frozen=True)
class ProfileCost:
    """The calls of one delegate on one optimization profile.

    Attributes:
        delegate: the delegate.
        profile: its index.
        ranges: what it accepts, per input of the engine and dim: (min, opt, max); empty where not recorded.
        time: host time of the delegate's calls; `time.count` of 0 means that no run used it.
        shapes: those calls by the shapes of the method's inputs, in order of their first run.
    """

    delegate: Delegate
    profile: int
    ranges: list[list[tuple[int, int, int]]]
    time: Times
    shapes: list[ShapeCost]


def profile_costs(session: Session) -> list[ProfileCost]:
    """Every profile of every TensorRT delegate, in order, those that no run used included."""
    seen: dict[tuple[str, int, int], _Calls] = {}
    for run in session.runs:
        traced = {event.instruction: traced_shapes(event) for event in run.events if event.kind == "delegate"}
        for event in delegate_calls(run.events):
            profile = run.profiles.get(str(event.instruction))
            if profile is not None:
                calls = seen.setdefault((run.method, event.instruction, profile), _Calls())
                calls.whole.append(event.duration_us)
                group = calls.by_shapes.setdefault(repr(run.shapes), _ShapeCalls(run.shapes))
                group.durations.append(event.duration_us)
                group.engine_shapes = traced.get(event.instruction) or group.engine_shapes
    ran = grouped(seen, lambda key: key[:2])
    return [
        _described(delegate, profile, seen.get((delegate.method, delegate.instruction, profile), _Calls()))
        for delegate in session.delegates
        if delegate.engine is not None
        for profile in _indices(delegate, ran.get(delegate.place, []))
    ]


@dataclass
class _ShapeCalls:
    shapes: list[list[int]]
    durations: list[float] = field(default_factory=list[float])
    engine_shapes: list[list[int]] = field(default_factory=list[list[int]])


@dataclass
class _Calls:
    whole: list[float] = field(default_factory=list[float])
    by_shapes: dict[str, _ShapeCalls] = field(default_factory=dict[str, _ShapeCalls])


def _indices(delegate: Delegate, seen: Collection[tuple[str, int, int]]) -> list[int]:
    """Those that are recorded, and those that ran."""
    declared = range(len(delegate.engine.profiles) if delegate.engine else 0)
    return sorted({*declared, *(profile for _, _, profile in seen)})


def _described(delegate: Delegate, profile: int, calls: _Calls) -> ProfileCost:
    declared = delegate.engine.profiles if delegate.engine else []
    ranges = declared[profile] if 0 <= profile < len(declared) else []
    shapes = [ShapeCost(g.shapes, Times.of(g.durations), g.engine_shapes) for g in calls.by_shapes.values()]
    return ProfileCost(delegate, profile, ranges, Times.of(calls.whole), shapes)
