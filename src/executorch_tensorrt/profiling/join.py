"""Joins what was recorded with the program that ran: by method and instruction, never by order of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from executorch_tensorrt import program as pte
from executorch_tensorrt.events import DELEGATE_EVENT, EVENT_PREFIX
from executorch_tensorrt.profiling.bulk import without_garbage_collection
from executorch_tensorrt.profiling.etdump import Block, TracedEvent
from executorch_tensorrt.profiling.session import Delegate, Engine, Event, EventKind, Run, Source
from executorch_tensorrt.program.blobs import read_engine
from executorch_tensorrt.records import build, parse

METHOD_EVENT = "Method::execute"
EXECUTE_BLOCK = "Execute"

_KINDS: Mapping[str, EventKind] = {METHOD_EVENT: "method", "DELEGATE_CALL": "call", "OPERATOR_CALL": "operator"}


@dataclass(frozen=True)
class Call:
    """One call of a method, from the caller's side.

    Attributes:
        wall_us: microseconds.
        shapes, dtypes: of the inputs, in order.
    """

    wall_us: float
    shapes: list[list[int]]
    dtypes: list[str]


def describe_delegates(method: pte.Method) -> list[Delegate]:
    """Every delegate and operator of a method, in order of instructions.

    Raises:
        ValueError: an engine is damaged.
    """
    found: list[Delegate] = []
    for place, instruction in enumerate(method.instructions):
        if instruction.kind == "kernel":
            found.append(Delegate(method.name, place, -1, "", instruction.name))
        elif instruction.kind == "delegate":
            delegate = method.delegates[instruction.delegate]
            name = f"{delegate.backend_id} {delegate.index}"
            engine = _engine(delegate) if delegate.backend_id == pte.BACKEND_ID else None
            found.append(Delegate(method.name, place, delegate.index, delegate.backend_id, name, engine))
    return found


def check_places(blocks: Sequence[Block], delegates: Sequence[Delegate]) -> None:
    """Whether what was recorded can be of a method with these delegates and operators.

    Raises:
        ValueError: an event lies where the method has another kind of instruction.
    """
    places = {delegate.instruction: delegate.index >= 0 for delegate in delegates}
    engines = {d.instruction: d.engine.engine_id for d in delegates if d.engine is not None and d.engine.engine_id}
    kinds = {"DELEGATE_CALL": True, "OPERATOR_CALL": False}
    for block in blocks:
        for event in block.events:
            if event.name in kinds and places.get(event.instruction) is not kinds[event.name]:
                raise ValueError(
                    f"the ETDump is of another program or method: got {event.name} at instruction {event.instruction}, "
                    "where the method has none; give the program and the method that ran"
                )
            ran = _engine_of(event)
            if ran and engines.get(event.instruction, ran) != ran:
                raise ValueError(
                    f"the ETDump is of another program or method: got engine {ran} at instruction {event.instruction}, "
                    f"where the program has {engines[event.instruction]}; give the program and the method that ran"
                )


def _engine_of(event: TracedEvent) -> str:
    """The engine that a delegate's event names; empty for other events."""
    if event.delegate_id != DELEGATE_EVENT:
        return ""
    return str(_parsed(event.metadata).get("engine_id", ""))


def host_us(block: Block) -> float:
    """Microseconds of the method's call in a block, 0 where they were not kept."""
    return sum(event.end - event.start for event in block.events if event.name == METHOD_EVENT) / 1e3


def join_runs(method: str, blocks: Sequence[Block], calls: Sequence[Call], delegates: Sequence[Delegate]) -> list[Run]:
    """A run for each call. Those whose events were not kept have none.

    Args:
        method: the method that was called.
        blocks: of an ETDump that was begun before the first of `calls` and holds no other calls.
        calls: in order.
        delegates: of the method.
    """
    backends = {delegate.instruction: delegate.backend_id for delegate in delegates}
    executed = [block for block in blocks if block.name == EXECUTE_BLOCK]
    executed += [Block(EXECUTE_BLOCK, [])] * (len(calls) - len(executed))
    with without_garbage_collection():
        runs = [
            _run(method, number, call, list(_events(block.events, backends)))
            for number, (call, block) in enumerate(zip(calls, executed, strict=True))
        ]
        _settle_device_times(runs)
        return runs


def _settle_device_times(runs: Sequence[Run]) -> None:
    """Gives the device time of a call that returned early, which the next call of its delegate tells, to that call."""
    last: dict[int, dict[str, Any]] = {}
    for run in runs:
        if not run.events:
            last.clear()  # nobody knows which delegates it called
        for event in run.events:
            if event.kind != "delegate":
                continue
            device_ns = event.metadata.pop("device_ns_of_last_call", None)
            before = last.get(event.instruction, {})
            if device_ns is not None and before.get("returned_early") is True:
                before["device_ns"] = device_ns
            last[event.instruction] = event.metadata


def _run(method: str, number: int, call: Call, events: list[Event]) -> Run:
    used = {
        str(event.instruction): profile
        for event in events
        if event.kind == "delegate" and type(profile := event.metadata.get("profile")) is int
    }
    return Run(method, number, call.wall_us, call.shapes, call.dtypes, used, events)


def _events(traced: Sequence[TracedEvent], backends: Mapping[int, str]) -> Iterator[Event]:
    whole = next((event for event in traced if event.name == METHOD_EVENT), None)
    begin = whole.start if whole else min((event.start for event in traced), default=0)
    # What encloses others comes first.
    for item in sorted(traced, key=lambda event: (event.start, -event.end)):
        kind = _kind(item, backends)
        metadata = _metadata(item.metadata) if kind in ("delegate", "phase", "layer") else {}
        layer = metadata.pop("instruction", -1) if kind == "layer" else -1
        yield Event(
            name=item.name if item.delegate_id is None else str(item.delegate_id),
            kind=kind,
            start_us=(item.start - begin) / 1e3,
            duration_us=max(item.end - item.start, 0) / 1e3,
            clock="device" if metadata.pop("clock", "host") == "device" else "host",
            instruction=item.instruction,
            layer_instruction=layer if type(layer) is int else -1,
            metadata=metadata,
        )


def _kind(event: TracedEvent, backends: Mapping[int, str]) -> EventKind:
    if event.delegate_id is None:
        return _KINDS.get(event.name, "other")
    if event.delegate_id == DELEGATE_EVENT:
        return "delegate"
    if str(event.delegate_id).startswith(EVENT_PREFIX):
        return "phase"
    return "layer" if backends.get(event.instruction) == pte.BACKEND_ID else "other"


def _metadata(raw: bytes) -> dict[str, Any]:
    return dict(_parsed(raw)) if raw else {}


@lru_cache(1024)
def _parsed(raw: bytes) -> Mapping[str, Any]:
    """Nothing where it is no object, or one that a session could not hold."""
    try:
        return build(dict[str, Any], parse(raw))
    except ValueError:
        return {}


def _engine(delegate: pte.Delegate) -> Engine:
    blob = read_engine(delegate)
    return Engine(
        engine_id=blob.engine_id,
        kind=blob.record.engine_kind if blob.record else "tensorrt",
        size_bytes=len(blob.engine),
        signature=blob.signature,
        input_names=[item.name for item in blob.inputs],
        profiles=blob.profiles or [],
        sources={
            handle: Source(source.get("op", ""), source.get("module", ""), source.get("location", ""))
            for handle, source in blob.sources.items()
        },
        layer_handles=blob.layer_handles,
    )
