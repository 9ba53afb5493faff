"""Binding, staging, enqueue and synchronisation within each TensorRT delegate."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from executorch_tensorrt.events import (
    ENQUEUE,
    INPUT_BINDING,
    OUTPUT_BINDING,
    OUTPUT_STAGING,
    PHASES,
    SHAPE_INFERENCE,
    SYNCHRONIZE,
)
from executorch_tensorrt.profiling.processors.times import Times, share_of
from executorch_tensorrt.profiling.session import Delegate, Session

_LABELS = {
    INPUT_BINDING: "input binding",
    SHAPE_INFERENCE: "shape inference",
    OUTPUT_BINDING: "output binding",
    ENQUEUE: "enqueue, host",
    OUTPUT_STAGING: "output staging",
    SYNCHRONIZE: "synchronisation",
}


_LARGEST = 1 << 63  # what a session says is not trusted


@dataclass(frozen=True)
class Phase:
    """One host step of a delegate's calls.

    Attributes:
        name: as traced, such as "torchtrt.input_binding"; "" for what lies in no phase.
        label: in words, such as "input binding"; "outside phases" for what lies in no phase.
        time: host time.
        share: of the delegate's host time (torchtrt.delegate), 0 to 1.
    """

    name: str
    label: str
    time: Times
    share: float


@dataclass(frozen=True)
class DelegatePhases:
    """The calls of one TensorRT delegate, split.

    Attributes:
        delegate: the delegate.
        time: host time of torchtrt.delegate.
        phases: in the order in which they run, then what lies in none; empty below level "phases".
        staged_bytes: copied between host and device because of where tensors lie: the median call's.
        layers_dropped: layer records that did not fit, over all runs.
    """

    delegate: Delegate
    time: Times
    phases: list[Phase]
    staged_bytes: int
    layers_dropped: int


def phases(session: Session) -> list[DelegatePhases]:
    """Every TensorRT delegate that ran, in order of methods and instructions."""
    calls: dict[tuple[str, int], _Calls] = {}
    for run in session.runs:
        inside: dict[int, float] = {}
        for event in run.events:
            if event.kind not in ("phase", "delegate"):
                continue
            seen = calls.setdefault((run.method, event.instruction), _Calls())
            sign = 1 if event.kind == "delegate" else -1
            inside[event.instruction] = inside.get(event.instruction, 0.0) + sign * event.duration_us
            if event.kind == "phase":
                seen.phases.setdefault(event.name, []).append(event.duration_us)
            else:
                seen.whole.append(event.duration_us)
                seen.staged.append(_integer(event.metadata.get("staged_bytes")))
                seen.dropped += _integer(event.metadata.get("layers_dropped"))
        for instruction, rest in inside.items():
            calls[run.method, instruction].outside.append(max(rest, 0.0))
    found = ((delegate, calls.get(delegate.place)) for delegate in session.delegates)
    return [_described(delegate, seen) for delegate, seen in found if seen is not None]


@dataclass
class _Calls:
    whole: list[float] = field(default_factory=list[float])
    phases: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    outside: list[float] = field(default_factory=list[float])
    staged: list[int] = field(default_factory=list[int])
    dropped: int = 0


def _described(delegate: Delegate, calls: _Calls) -> DelegatePhases:
    whole = Times.of(calls.whole)
    order = [*(name for name in PHASES if name in calls.phases), *(name for name in calls.phases if name not in PHASES)]
    found = [(name, _LABELS.get(name, name), Times.of(calls.phases[name])) for name in order]
    if found:
        found.append(("", "outside phases", Times.of(calls.outside)))
    rows = [Phase(name, label, time, share_of(time.total_us, whole.total_us)) for name, label, time in found]
    staged = int(median(calls.staged)) if calls.staged else 0
    return DelegatePhases(delegate, whole, rows, staged, calls.dropped)


def _integer(value: object) -> int:
    return value if type(value) is int and 0 <= value < _LARGEST else 0
