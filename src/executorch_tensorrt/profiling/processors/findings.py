"""Findings in plain words: what stands out, what it means, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from executorch_tensorrt.events import INPUT_BINDING, OUTPUT_STAGING, SYNCHRONIZE
from executorch_tensorrt.profiling.processors.device_times import DeviceTime, device_times
from executorch_tensorrt.profiling.processors.gaps import Gap, gaps
from executorch_tensorrt.profiling.processors.layers import Layer, layers
from executorch_tensorrt.profiling.processors.phases import DelegatePhases, phases
from executorch_tensorrt.profiling.processors.profiles import ProfileCost, profile_costs
from executorch_tensorrt.profiling.processors.spread import RunSpread, spread
from executorch_tensorrt.profiling.processors.times import grouped, host_us_by_method, share_of
from executorch_tensorrt.profiling.session import Delegate, Session
from executorch_tensorrt.words import (
    bytes_text,
    count_text,
    microseconds_text,
    ranges_text,
    shapes_text,
    share_text,
    short_text,
)

FindingKind = Literal[
    "dropped events", "staged copies", "synchronisation", "launch-bound", "dominant layer", "far from opt",
    "many delegates", "operators outside", "orchestration", "unstable runs", "unused profile", "first call",
]  # fmt: skip

# From where on something is worth a sentence.
_SYNCHRONISATION = 0.2  # of a delegate's host time
_LAUNCH = 0.8  # of an engine's device time: what its work takes to be queued
_DEVICE_US = 5.0  # below, events on a stream are too coarse
_LAYER = 0.3  # of all layer time
_LAYERS_TO_DOMINATE = 3
_LAYER_US = 5.0  # below, clocks that tick in microseconds make shares meaningless
_FAR = 4.0  # times the opt size, or that part of it
_DELEGATES = 4
_BETWEEN_DELEGATES = 0.15  # of a method's host time
_OUTSIDE = 0.1
_UNSTABLE = 1.5  # p90 by median
_RUNS_TO_SPREAD = 10
_FIRST_CALL = 5.0  # times the median


@dataclass(frozen=True)
class Finding:
    """One thing that stands out.

    Attributes:
        kind: which rule found it.
        subject: where: "forward, TensorRTBackend 0".
        fact: what was measured, with figures and units.
        meaning: why it matters.
        advice: what to do.
        share: how much of the method's host time it is about, 0 to 1; 0 where it is about no part of it.
    """

    kind: FindingKind
    subject: str
    fact: str
    meaning: str
    advice: str
    share: float


def findings(session: Session) -> list[Finding]:
    """What stands out: first what limits the figures themselves, then by share. Empty if nothing does."""
    known = _Known(
        session, host_us_by_method(session), phases(session), device_times(session), layers(session), gaps(session),
        profile_costs(session), spread(session),
    )  # fmt: skip
    found = [finding for rule in _RULES for finding in rule(known)]
    return sorted(found, key=lambda item: (item.kind != "dropped events", -item.share))


@dataclass(frozen=True)
class _Known:
    """The session, and what the other processors say of it."""

    session: Session
    host_us: Mapping[str, float]
    phases: list[DelegatePhases]
    device_times: list[DeviceTime]
    layers: list[Layer]
    gaps: list[Gap]
    costs: list[ProfileCost]
    spread: list[RunSpread]

    def share(self, method: str, part_us: float) -> float:
        return share_of(part_us, self.host_us.get(method, 0.0))


def _name(delegate: Delegate) -> str:
    return f"{delegate.method}, {delegate.name}"


def _dropped_events(known: _Known) -> Iterator[Finding]:
    runs = known.session.runs
    empty = sum(not any(event.kind == "method" for event in run.events) for run in runs)
    layers_dropped = sum(item.layers_dropped for item in known.phases)
    advice = "Capture fewer runs, or at a lower level; trace files (--format perfetto) keep every layer."
    if empty:
        fact = f"The events of {empty} of {count_text(len(runs), 'run')} were not kept."
        yield Finding("dropped events", "all methods", fact, "Figures of events come from the other runs.", advice, 0.0)
    if layers_dropped:
        fact = f"{count_text(layers_dropped, 'layer record')} did not fit into the ETDump."
        yield Finding("dropped events", "all methods", fact, "Layers that ran late in a call are missing.", advice, 0.0)


def _within_delegates(known: _Known) -> Iterator[Finding]:
    for item in known.phases:
        shares = {phase.name: known.share(item.delegate.method, phase.time.total_us) for phase in item.phases}
        if item.staged_bytes:
            share = sum(shares.get(name, 0.0) for name in (INPUT_BINDING, OUTPUT_STAGING))
            yield _staged_copies(item, share)
        waits = next((phase for phase in item.phases if phase.name == SYNCHRONIZE), None)
        if waits and waits.share >= _SYNCHRONISATION:
            yield Finding(
                "synchronisation",
                _name(item.delegate),
                f"{share_text(waits.share)} of its host time is spent waiting for the device "
                f"({microseconds_text(waits.time.median_us)} a call).",
                "The host waits because outputs lie in host memory, or because no stream was given. It is the time of "
                "the engine's work, seen from the host; the host could do other work in it.",
                "Give inputs and outputs on the device and a stream, so that the call returns once its work is queued; "
                "else look at the layers to make the work itself shorter.",
                shares[SYNCHRONIZE],
            )


def _staged_copies(item: DelegatePhases, share: float) -> Finding:
    return Finding(
        "staged copies",
        _name(item.delegate),
        f"{bytes_text(item.staged_bytes)} are copied between host and device in each call.",
        "Inputs or outputs lie in host memory, and the engine runs on the device.",
        "Keep them on the device from call to call, and let neighbouring delegates hand tensors on there.",
        min(share, 1.0),
    )


def _launch_bound(known: _Known) -> Iterator[Finding]:
    for item in known.device_times:
        device, enqueue = item.time.median_us, item.enqueue.median_us
        if device < _DEVICE_US or enqueue < _LAUNCH * device:
            continue
        yield Finding(
            "launch-bound",
            f"{_name(item.delegate)}, profile {item.profile}",
            f"The host takes {microseconds_text(enqueue)} to queue the engine's work, and the device "
            f"{microseconds_text(device)} from its beginning to its end.",
            "The device is done about as soon as the last of it is queued: it waits for the host between kernels.",
            "Give a call more work, such as a larger batch; a faster GPU would not make these calls faster.",
            known.share(item.delegate.method, item.enqueue.total_us),
        )


def _dominant_layers(known: _Known) -> Iterator[Finding]:
    rows = grouped(known.layers, lambda row: row.delegate.method)
    for method in known.host_us:
        own = rows.get(method, [])
        if len(own) < _LAYERS_TO_DOMINATE:
            continue
        for row in own:
            if row.share < _LAYER or row.time.median_us < _LAYER_US:
                continue
            origin, start = _origin(row)
            share = known.share(method, row.time.total_us) if row.clock == "host" else 0.0
            yield Finding(
                "dominant layer",
                _name(row.delegate),
                f"Layer '{short_text(row.name)}' takes {share_text(row.share)} of all layer time on the {row.clock}, "
                f"{microseconds_text(row.time.median_us)} a call under profile {row.profile}.{origin}",
                "Making any other layer faster changes little.",
                f"Start with {start}: shapes, precision, or another formulation.",
                share,
            )


def _origin(row: Layer) -> tuple[str, str]:
    """Where a layer comes from, as a sentence, and what to begin with."""
    if not row.sources:
        return "", "the operator behind it"
    first, more = row.sources[0], len(row.sources) - 1
    sentence = f" It comes from {short_text(first.op)} in {short_text(first.module or 'the model')}"
    where = f" ({short_text(first.location)})" if first.location else ""
    if not more:
        return f"{sentence}.", f"this operator{where}"
    together = f"{count_text(more, 'more operator')}, which the engine runs in one step"
    return f"{sentence} and {together}.", f"these operators{where}"


def _between_delegates(known: _Known) -> Iterator[Finding]:
    rows = grouped(known.gaps, lambda gap: gap.method)
    delegates_of = grouped(known.session.delegates, lambda delegate: delegate.method)
    for method in known.host_us:
        own = rows.get(method, [])
        outside = sum(operator.share for gap in own for operator in gap.operators)
        between = sum(gap.share for gap in own)
        delegates = [item for item in delegates_of.get(method, []) if item.index >= 0]
        if delegates and outside >= _OUTSIDE:
            yield _operators_outside(method, own, outside)
        if len(delegates) >= _DELEGATES and between >= _BETWEEN_DELEGATES:
            yield Finding(
                "many delegates",
                method,
                f"It is split into {len(delegates)} delegates; {share_text(between)} of its time lies between them.",
                "Every border costs a call, and keeps the engine from fusing what lies on its two sides.",
                "Make the operators that split it run inside an engine, or raise the partitioner's smallest size.",
                between,
            )
        elif between - outside >= _BETWEEN_DELEGATES:
            yield Finding(
                "orchestration",
                method,
                f"{share_text(between - outside)} of its time is ExecuTorch's own work around delegates and operators.",
                "The work of a call is small beside the fixed cost of making it.",
                "Batch more into one call; if calls have to be this small, this is their floor.",
                between - outside,
            )


def _operators_outside(method: str, own: list[Gap], share: float) -> Finding:
    operators = sorted((item for gap in own for item in gap.operators), key=lambda item: -item.share)
    names = list(dict.fromkeys(item.operator.name for item in operators))
    named = ", ".join(map(short_text, names[:3])) + (" and others" if len(names) > 3 else "")
    return Finding(
        "operators outside",
        method,
        f"{share_text(share)} of its time goes to operators outside delegates: {named}.",
        "They run on ExecuTorch's portable kernels, one at a time, on the host.",
        "Rewrite them as operators that an engine takes, or add a partitioner for them; 'etrt inspect' lists them all.",
        share,
    )


def _profiles(known: _Known) -> Iterator[Finding]:
    profiles = Counter(cost.delegate.place for cost in known.costs)
    for cost in known.costs:
        several = profiles[cost.delegate.place] > 1
        if not cost.time.count and several and cost.delegate.method in known.host_us:
            yield Finding(
                "unused profile",
                f"{_name(cost.delegate)}, profile {cost.profile}",
                "No run used it.",
                "The session says nothing about what it costs.",
                "Capture with inputs for every profile that matters.",
                0.0,
            )
        yield from _far_from_opt(known, cost)


def _far_from_opt(known: _Known, cost: ProfileCost) -> Iterator[Finding]:
    for item in cost.shapes:
        far = _farthest(item.engine_shapes or item.shapes, cost.ranges)
        if far is None:
            continue
        place, axis, size, opt = far
        yield Finding(
            "far from opt",
            f"{_name(cost.delegate)}, profile {cost.profile}",
            f"Calls with {shapes_text(item.shapes)} have {size} in dim {axis} of input {place}, where the profile is "
            f"tuned for {opt}; its ranges are {ranges_text(cost.ranges[place])}.",
            "The engine's kernels were chosen for the opt shape and may suit this one badly.",
            f"If such calls matter, move opt towards {size}, or add a profile for them: 'etrt advise' proposes a list.",
            known.share(cost.delegate.method, item.time.total_us),
        )


def _farthest(shapes: list[list[int]], ranges: list[list[tuple[int, int, int]]]) -> tuple[int, int, int, int] | None:
    """Input, dim, size and opt of the dim that is farthest from its opt, if it is far.

    Where the delegate traced no shapes of its own, those of the method's inputs stand in if every one fits the ranges.
    """
    if [len(shape) for shape in shapes] != [len(dims) for dims in ranges]:
        return None
    dims = [
        (place, axis, size, dim)
        for place, (shape, dims) in enumerate(zip(shapes, ranges, strict=True))
        for axis, (size, dim) in enumerate(zip(shape, dims, strict=True))
    ]
    if not all(low <= size <= high for _, _, size, (low, _, high) in dims):
        return None
    found = max(dims, key=_distance, default=None)
    return (*found[:3], found[3][1]) if found and _distance(found) >= _FAR else None


def _distance(dim: tuple[int, int, int, tuple[int, int, int]]) -> float:
    _, _, size, (_, opt, _) = dim
    return max(size / opt, opt / size) if size and opt else 0.0


def _unstable_runs(known: _Known) -> Iterator[Finding]:
    for group in known.spread:
        if len(group.runs) < _RUNS_TO_SPREAD or group.wall.p90_us < _UNSTABLE * group.wall.median_us:
            continue
        yield Finding(
            "unstable runs",
            f"{group.method}, {shapes_text(group.shapes)}",
            f"One run in ten takes {microseconds_text(group.wall.p90_us)} or more, the median "
            f"{microseconds_text(group.wall.median_us)}; the slowest is run {group.slowest}.",
            "Something else used the machine, or work that is not part of every call happened in some.",
            f"Look at run {group.slowest} beside run {group.typical}; capture more runs on a quiet machine.",
            0.0,
        )


def _first_calls(known: _Known) -> Iterator[Finding]:
    groups = grouped(known.spread, lambda group: group.method)
    for item in known.session.startup:
        # Inputs take turns, so their groups come in the same order, unless some have the same shapes.
        if len(item.first_calls_us) != len(groups.get(item.method, [])):
            continue
        medians = [group.wall.median_us for group in groups.get(item.method, [])]
        if not medians or min(medians) <= 0:
            continue
        ratios = [first / median for first, median in zip(item.first_calls_us, medians, strict=True)]
        place = ratios.index(max(ratios))
        if ratios[place] >= _FIRST_CALL:
            yield Finding(
                "first call",
                item.method,
                f"A first call took {microseconds_text(item.first_calls_us[place])}, later ones like it "
                f"{microseconds_text(medians[place])}; loading took {microseconds_text(item.load_us)}.",
                "A profile's first call makes its execution context, and kernels prepare themselves.",
                "Call the method once with inputs for every profile before it has to answer requests.",
                0.0,
            )


_RULES = (
    _dropped_events,
    _within_delegates,
    _launch_bound,
    _dominant_layers,
    _between_delegates,
    _profiles,
    _unstable_runs,
    _first_calls,
)
