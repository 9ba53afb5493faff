"""Two sessions side by side: before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from executorch_tensorrt.profiling.processors.device_times import device_times
from executorch_tensorrt.profiling.processors.gaps import gaps
from executorch_tensorrt.profiling.processors.layers import layers
from executorch_tensorrt.profiling.processors.phases import phases
from executorch_tensorrt.profiling.processors.regions import regions
from executorch_tensorrt.profiling.processors.spread import spread
from executorch_tensorrt.profiling.processors.times import Times
from executorch_tensorrt.profiling.session import Session
from executorch_tensorrt.words import shapes_text

ChangeKind = Literal["run", "delegate", "phase", "device", "layer", "operator"]


@dataclass(frozen=True)
class Change:
    """One thing that was measured in both sessions, or in one of them.

    Attributes:
        kind: "run" (a method's call, from the caller's side), "delegate", "phase", "device" (an engine's work, by
            the device's clock), "layer" or "operator".
        method: whose.
        place: the delegate it lies in, by name; empty for runs, delegates and operators.
        name: what it is called; of a run, the shapes of its inputs.
        profile: the optimization profile; -1 where it has none.
        before: its times in the first session; None where that has no such thing.
        after: in the second.
        ratio: median after by median before; None unless both are above zero.
    """

    kind: ChangeKind
    method: str
    place: str
    name: str
    profile: int
    before: Times | None
    after: Times | None
    ratio: float | None


@dataclass(frozen=True)
class Comparison:
    """What changed between two sessions.

    Attributes:
        differences: what else differs and limits the comparison: program, machine, versions, level, shapes. In words.
        changes: by kind in the order of `ChangeKind`, and in a kind the largest change of total time per run first.
    """

    differences: list[str]
    changes: list[Change]


def compare(before: Session, after: Session) -> Comparison:
    """Matches methods, delegates by place, phases and layers by name."""
    old, new = _measured(before), _measured(after)
    keys = dict.fromkeys([*old, *new])
    changes = [Change(*key, old.get(key), new.get(key), _ratio(old.get(key), new.get(key))) for key in keys]
    kinds = get_args(ChangeKind)
    runs = [Counter(run.method for run in session.runs) for session in (before, after)]
    sizes = {id(change): _size(change, *runs) for change in changes}
    changes.sort(key=lambda change: (kinds.index(change.kind), -sizes[id(change)]))
    return Comparison(list(_differences(before, after)), changes)


_Key = tuple[ChangeKind, str, str, str, int]


def _measured(session: Session) -> dict[_Key, Times]:
    """All rows of the reports, by what they are called."""
    found: dict[_Key, Times] = {}
    for group in spread(session):
        found["run", group.method, "", shapes_text(group.shapes), -1] = group.wall
    for region in regions(session):
        found["delegate", region.delegate.method, "", region.delegate.name, -1] = region.time
    for item in phases(session):
        for phase in item.phases:
            found["phase", item.delegate.method, item.delegate.name, phase.label, -1] = phase.time
    for item in device_times(session):
        found["device", item.delegate.method, "", item.delegate.name, item.profile] = item.time
    for layer in layers(session):
        name = f"{layer.name} ({layer.clock})"
        found["layer", layer.delegate.method, layer.delegate.name, name, layer.profile] = layer.time
    operators: dict[tuple[str, str], int] = {}
    for gap in gaps(session):
        for item in gap.operators:
            name = item.operator.name
            # The same kernel at several places: told apart by its turn.
            turn = operators[gap.method, name] = operators.get((gap.method, name), 0) + 1
            found["operator", gap.method, "", f"{name} #{turn}" if turn > 1 else name, -1] = item.time
    return found


def _ratio(before: Times | None, after: Times | None) -> float | None:
    if before is None or after is None or before.median_us <= 0 or after.median_us <= 0:
        return None
    return after.median_us / before.median_us


def _size(change: Change, before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """How much the time per run changed, in microseconds, from how many runs each method has."""
    old, new = (
        0.0 if times is None else times.total_us / max(runs.get(change.method, 0), 1)
        for times, runs in ((change.before, before), (change.after, after))
    )
    return abs(new - old)


def _differences(before: Session, after: Session) -> Iterator[str]:
    if before.program.get("sha256") != after.program.get("sha256"):
        yield f"the program: {_program(before)}, then {_program(after)}"
    if before.level != after.level:
        yield f"the level: {before.level}, then {after.level}; a higher one costs more time itself"
    for name, old, new in (("machine", before.machine, after.machine), ("versions", before.versions, after.versions)):
        keys = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
        if keys:
            changed = ", ".join(f"{key} {old.get(key, 'none')}, then {new.get(key, 'none')}" for key in keys)
            yield f"the {name}: {changed}"
    shapes = [{(run.method, shapes_text(run.shapes)) for run in session.runs} for session in (before, after)]
    if shapes[0] != shapes[1]:
        yield "the shapes of the runs; delegates, phases and layers are over all of them"


def _program(session: Session) -> str:
    return f"{session.program.get('name') or 'unnamed'} ({session.program.get('sha256', 'unknown')})"
