"""All runs as Trace Event JSON, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from executorch_tensorrt.profiling.session import Delegate, Event, Run, Session
from executorch_tensorrt.words import shapes_text

_METHOD_TRACK = 1
_TRACKS_PER_DELEGATE = 3
_PAUSE_US = 10.0


def render(session: Session) -> str:
    """A process per method; in it a track for the method, and for each delegate one for its host steps and one each for
    layers by the host's and by the device's clock.

    Runs follow one another as in the session, with a short pause between them that stands for whatever lay there.
    """
    methods = {method: number for number, method in enumerate(dict.fromkeys(run.method for run in session.runs), 1)}
    delegates = session.delegates_by_place()
    slices: list[dict[str, Any]] = []
    named: dict[tuple[int, int], str] = {}
    begin = 0.0
    for run in session.runs:
        process = methods[run.method]
        end = run.wall_us
        for event in run.events:
            delegate = delegates.get((run.method, event.instruction))
            track, name = _track(event, delegate)
            named[process, track] = name
            slices.append(_slice(event, delegate, run, process, track, begin))
            end = max(end, event.start_us + event.duration_us)
        begin += end + _PAUSE_US
    other = {"program": session.program, "level": session.level, "created": session.created, "notes": session.notes}
    events = [*_names(methods, named), *slices]
    return json.dumps({"displayTimeUnit": "ns", "otherData": other, "traceEvents": events}, allow_nan=False)


def _track(event: Event, delegate: Delegate | None) -> tuple[int, str]:
    if delegate is None or delegate.index < 0 or event.kind in ("method", "call", "operator"):
        return _METHOD_TRACK, "method, host clock"
    first = 2 + _TRACKS_PER_DELEGATE * delegate.index
    engine = f" ({delegate.engine.engine_id})" if delegate.engine and delegate.engine.engine_id else ""
    if event.kind != "layer":
        return first, f"{delegate.name}{engine}: host clock"
    return first + (2 if event.clock == "device" else 1), f"{delegate.name}{engine}: layers, {event.clock} clock"


def _slice(event: Event, delegate: Delegate | None, run: Run, process: int, track: int, begin: float) -> dict[str, Any]:
    arguments: dict[str, Any] = {"run": run.number, "shapes": shapes_text(run.shapes), **event.metadata}
    if delegate is not None:
        arguments |= {"delegate": delegate.name, "instruction": event.instruction}
        if str(event.instruction) in run.profiles:
            arguments["profile"] = run.profiles[str(event.instruction)]
    called = event.kind in ("call", "operator") and delegate is not None
    return {
        "ph": "X",
        "name": delegate.name if called and delegate is not None else event.name,
        "cat": event.kind,
        "pid": process,
        "tid": track,
        "ts": round(begin + event.start_us, 3),
        "dur": round(event.duration_us, 3),
        "args": arguments,
    }


def _names(methods: dict[str, int], tracks: dict[tuple[int, int], str]) -> Iterator[dict[str, Any]]:
    for method, process in methods.items():
        yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": f"method {method}"}}
    for (process, track), name in sorted(tracks.items()):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": track, "args": {"sort_index": track}}
