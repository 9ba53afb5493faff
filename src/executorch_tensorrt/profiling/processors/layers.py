"""Dominant layers."""

from __future__ import annotations

from dataclasses import dataclass

from executorch_tensorrt.profiling.processors.times import Times, methods_of, share_of
from executorch_tensorrt.profiling.session import Clock, Delegate, Session, Source

MAX_SOURCES = 256  # all layers of an engine may name the same operators, so without a limit little unfolds into much


@dataclass(frozen=True)
class Layer:
    """One layer of an engine under one optimization profile.

    Attributes:
        delegate: whose engine.
        profile: the optimization profile; the same layer under another one is another row.
        name: as the engine reports it, with " #k" where a name repeats.
        clock: "device" or "host". Times of different clocks do not add up.
        time: per call.
        share: of all layer time of the method on the same clock, 0 to 1.
        sources: the operators it comes from, the first `MAX_SOURCES` of them; empty where the conversion did not record
            the link. Layers that the engine runs as one step share theirs.
    """

    delegate: Delegate
    profile: int
    name: str
    clock: Clock
    time: Times
    share: float
    sources: list[Source]


def layers(session: Session) -> list[Layer]:
    """Every layer that ran, methods in order, and in a method the one with the most time first."""
    seen: dict[tuple[str, int, int, str, Clock], list[float]] = {}
    places: dict[tuple[str, int, int, str, Clock], int] = {}
    totals: dict[tuple[str, Clock], float] = {}
    for run in session.runs:
        for event in run.events:
            if event.kind != "layer":
                continue
            profile = run.profiles.get(str(event.instruction), 0)
            key = (run.method, event.instruction, profile, event.name, event.clock)
            seen.setdefault(key, []).append(event.duration_us)
            places.setdefault(key, event.layer_instruction)
            totals[run.method, event.clock] = totals.get((run.method, event.clock), 0.0) + event.duration_us
    found: list[Layer] = []
    delegates = session.delegates_by_place()
    for key, durations in seen.items():
        method, instruction, profile, name, clock = key
        if (delegate := delegates.get((method, instruction))) is None:
            continue
        time = Times.of(durations)
        share = share_of(time.total_us, totals[method, clock])
        found.append(Layer(delegate, profile, name, clock, time, share, layer_sources(delegate, profile, places[key])))
    order = {method: place for place, method in enumerate(methods_of(session))}
    return sorted(found, key=lambda layer: (order[layer.delegate.method], -layer.time.total_us))


def layer_sources(delegate: Delegate, profile: int, instruction: int) -> list[Source]:
    """Operators that a layer comes from, by its instruction; empty where the conversion did not record the link."""
    engine = delegate.engine
    if engine is None or not 0 <= profile < len(engine.layer_handles):
        return []
    handles = engine.layer_handles[profile].get(str(instruction), [])[:MAX_SOURCES]
    return [engine.sources[str(handle)] for handle in handles if str(handle) in engine.sources]
