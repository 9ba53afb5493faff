"""A session from the Perfetto traces that engines wrote, where there is no ETDump: in packages of PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from executorch_tensorrt.events import DELEGATE_EVENT
from executorch_tensorrt.profiling.join import METHOD_EVENT
from executorch_tensorrt.profiling.machine import describe_machine, describe_versions
from executorch_tensorrt.profiling.session import Delegate, Engine, Event, Run, Session
from executorch_tensorrt.program import BACKEND_ID

TRACES = "*.perfetto.json"
_OLD_DEVICE_TRACK = 3

_NOTE = (
    "These are traces of engines: what ran between them is not in them, and a run lasts from its first engine to its "
    "last."
)


@dataclass
class _Call:
    """One call of an engine."""

    slices: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    @property
    def whole(self) -> Mapping[str, Any]:
        return next(item for item in self.slices if item["name"] == DELEGATE_EVENT)

    @property
    def start(self) -> float:
        return self.whole["ts"]

    @property
    def end(self) -> float:
        return self.whole["ts"] + self.whole["dur"]


@dataclass(frozen=True)
class _Trace:
    method: str
    process: int
    engine_id: str
    engine_kind: str
    dropped: int
    calls: list[_Call]


def from_traces(path: str | os.PathLike[str]) -> Session:
    """A session from the Perfetto traces in a folder, or from one of them.

    Args:
        path: the folder that was given as `path_prefix`, or a file. The traces are of one process.

    Raises:
        FileNotFoundError: there is no trace.
        ValueError: a file is damaged, or they are of several processes.
        OSError: a file cannot be read.
    """
    files = sorted(Path(path).glob(TRACES)) if Path(path).is_dir() else [Path(path)]
    if not files or not files[0].is_file():
        raise FileNotFoundError(f"no trace ({TRACES}) at '{os.fspath(path)}'")
    traces = [_read(file) for file in files]
    processes = sorted({trace.process for trace in traces})
    if len(processes) > 1:
        raise ValueError(
            f"'{os.fspath(path)}' has traces of several processes: got {', '.join(map(str, processes))}, allowed one; "
            "report them apart"
        )
    engines = {(trace.method, trace.engine_id): trace for trace in reversed(traces)}
    firsts = {key: min(call.start for trace in traces if _key(trace) == key for call in trace.calls) for key in engines}
    ordered = sorted(engines, key=lambda key: (key[0], firsts[key]))
    delegates = [_delegate(engines[key], place) for place, key in enumerate(ordered)]
    places = {key: place for place, key in enumerate(ordered)}
    kinds = {item["cat"] for trace in traces for call in trace.calls for item in call.slices}
    dropped = sum(trace.dropped for trace in traces)
    names = {item["name"] for trace in traces for call in trace.calls for item in call.slices}
    return Session(
        program={"name": Path(path).name, "size_bytes": 0, "sha256": ""},
        level="layers" if "layer" in kinds else "phases" if names != {DELEGATE_EVENT} else "delegate",
        machine=describe_machine(),
        versions=describe_versions(),
        created=datetime.fromtimestamp(files[-1].stat().st_mtime, timezone.utc).isoformat(timespec="seconds"),
        delegates=delegates,
        runs=list(_runs(traces, places)),
        notes=[_NOTE, *([f"{dropped} calls did not fit into the traces."] if dropped else [])],
    )


def _key(trace: _Trace) -> tuple[str, str]:
    return trace.method, trace.engine_id


def _delegate(trace: _Trace, place: int) -> Delegate:
    engine = Engine(trace.engine_id, trace.engine_kind, 0, "", [], [])
    return Delegate(trace.method, place, place, BACKEND_ID, f"{BACKEND_ID} {place}", engine)


def _read(file: Path) -> _Trace:
    try:
        data = cast("dict[str, Any]", json.loads(file.read_bytes()))
        events = cast("list[dict[str, Any]]", data["traceEvents"])
        other = cast("dict[str, Any]", data["otherData"])
        if "engine_kind" not in other:
            other |= _shown(events)
        calls: dict[int, _Call] = {}
        for event in events:
            if event["ph"] == "X":
                calls.setdefault(event["args"]["call"], _Call()).slices.append(event)
        if not calls:
            raise ValueError("it has no calls")
        return _Trace(
            method=str(other["method"]),
            process=events[0]["pid"],
            engine_id=other["engine_id"],
            engine_kind=str(other["engine_kind"]),
            dropped=other["calls_dropped"],
            calls=sorted(calls.values(), key=lambda call: call.start),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration) as error:
        raise ValueError(f"'{file}' is no trace of an engine: {error}; trace again") from None


def _shown(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What is in the names of tracks alone, and the layers' clock in its track, in traces of earlier versions."""
    names = [str(event["args"]["name"]) for event in events if event["ph"] == "M"]
    for event in events:
        if event["ph"] == "X" and event["cat"] == "layer" and event["tid"] == _OLD_DEVICE_TRACK:
            event["args"]["clock"] = "device"
    return {"method": names[0].removeprefix("method "), "engine_kind": names[1].partition("(")[2].partition(")")[0]}


def _runs(traces: Sequence[_Trace], places: Mapping[tuple[str, str], int]) -> Iterator[Run]:
    """A run is over when one of its engines is called again."""
    number = 0
    for method in sorted({trace.method for trace in traces}):
        own = [(call, places[_key(trace)]) for trace in traces if trace.method == method for call in trace.calls]
        run: dict[int, _Call] = {}
        for call, place in sorted(own, key=lambda entry: entry[0].start):
            if place in run:
                yield _run(method, number, run)
                number, run = number + 1, {}
            run[place] = call
        yield _run(method, number, run)
        number += 1


def _run(method: str, number: int, calls: Mapping[int, _Call]) -> Run:
    begin = min(call.start for call in calls.values())
    wall = max(call.end for call in calls.values()) - begin
    events = [Event(METHOD_EVENT, "method", 0.0, wall)]
    for place, call in calls.items():
        events.append(Event("DELEGATE_CALL", "call", call.start - begin, call.end - call.start, instruction=place))
        events.extend(_event(item, place, begin) for item in call.slices)
    events.sort(key=lambda event: (event.start_us, -event.duration_us))
    profiles = {str(place): int(call.whole["args"]["profile"]) for place, call in calls.items()}
    return Run(method, number, wall, [], [], profiles, events)


def _event(item: Mapping[str, Any], place: int, begin: float) -> Event:
    layer = item["cat"] == "layer"
    return Event(
        name=item["name"],
        kind="layer" if layer else "delegate" if item["name"] == DELEGATE_EVENT else "phase",
        start_us=item["ts"] - begin,
        duration_us=item["dur"],
        clock="device" if item["args"].get("clock") == "device" else "host",
        instruction=place,
        metadata={key: value for key, value in item["args"].items() if key != "call" and not layer},
    )
