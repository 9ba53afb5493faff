"""A session from the Perfetto traces that engines wrote, where there is no ETDump: in packages of PyTorch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from executorch_tensorrt.events import DELEGATE_EVENT
from executorch_tensorrt.profiling.join import METHOD_EVENT
from executorch_tensorrt.profiling.machine import describe_machine, describe_versions
from executorch_tensorrt.profiling.processors.times import grouped
from executorch_tensorrt.profiling.session import Delegate, Engine, Event, Run, Session
from executorch_tensorrt.program import BACKEND_ID
from executorch_tensorrt.records import build, parse

TRACES = "*.perfetto.json"
_OLD_DEVICE_TRACK = 3

_NOTE = (
    "These are traces of engines: what ran between them is not in them, and a run lasts from its first engine to its "
    "last."
)


@dataclass(frozen=True)
class _Slice:
    """A complete event: `ph` is "X"."""

    name: str
    cat: str
    ts: float
    dur: float
    args: dict[str, Any]
    tid: int = 0


@dataclass(frozen=True)
class _Numbered:
    call: int


@dataclass(frozen=True)
class _Called:
    profile: int


@dataclass(frozen=True)
class _TrackName:
    """A metadata event: `ph` is "M"."""

    args: dict[str, str | int]


@dataclass(frozen=True)
class _Process:
    pid: int


@dataclass(frozen=True)
class _Other:
    engine_id: str
    calls_dropped: int
    method: str = ""
    engine_kind: str = ""


@dataclass(frozen=True)
class _File:
    traceEvents: list[dict[str, Any]]  # noqa: N815 (the format's name)
    otherData: _Other  # noqa: N815


@dataclass(frozen=True)
class _Call:
    """One call of an engine: its whole span, and with that what was traced in it."""

    whole: _Slice
    profile: int
    slices: list[_Slice]

    @property
    def start(self) -> float:
        return self.whole.ts

    @property
    def end(self) -> float:
        return self.whole.ts + self.whole.dur


@dataclass(frozen=True)
class _Trace:
    method: str
    process: int
    engine_id: str
    engine_kind: str
    dropped: int
    calls: list[_Call]

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.engine_id


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
    engines = grouped(traces, lambda trace: trace.key)
    firsts = {key: min(call.start for trace in own for call in trace.calls) for key, own in engines.items()}
    ordered = sorted(engines, key=lambda key: (key[0], firsts[key]))
    delegates = [_delegate(engines[key][0], place) for place, key in enumerate(ordered)]
    places = {key: place for place, key in enumerate(ordered)}
    kinds = {item.cat for trace in traces for call in trace.calls for item in call.slices}
    dropped = sum(trace.dropped for trace in traces)
    names = {item.name for trace in traces for call in trace.calls for item in call.slices}
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


def _delegate(trace: _Trace, place: int) -> Delegate:
    engine = Engine(trace.engine_id, trace.engine_kind, 0, "", [], [])
    return Delegate(trace.method, place, place, BACKEND_ID, f"{BACKEND_ID} {place}", engine)


def _read(file: Path) -> _Trace:
    try:
        return _trace(build(_File, parse(file.read_bytes())))
    except ValueError as error:
        raise ValueError(f"'{file}' is no trace of an engine: {error}; trace again") from None


def _trace(file: _File) -> _Trace:
    """What a file says.

    Raises:
        ValueError: it is not as the delegate writes it.
    """
    events, other = file.traceEvents, file.otherData
    slices = [build(_Slice, event) for event in events if event.get("ph") == "X"]
    if not other.engine_kind:
        other, slices = _of_earlier_versions(other, events, slices)
    by_call = grouped(slices, lambda item: build(_Numbered, item.args).call)
    if not by_call:
        raise ValueError("it has no calls")
    return _Trace(
        method=other.method,
        process=build(_Process, events[0]).pid,
        engine_id=other.engine_id,
        engine_kind=other.engine_kind,
        dropped=other.calls_dropped,
        calls=sorted((_call(number, own) for number, own in by_call.items()), key=lambda call: call.start),
    )


def _call(number: int, slices: list[_Slice]) -> _Call:
    whole = next((item for item in slices if item.name == DELEGATE_EVENT), None)
    if whole is None:
        raise ValueError(f"call {number} has no '{DELEGATE_EVENT}'")
    return _Call(whole, build(_Called, whole.args).profile, slices)


def _of_earlier_versions(
    other: _Other, events: Sequence[Mapping[str, Any]], slices: Sequence[_Slice]
) -> tuple[_Other, list[_Slice]]:
    """With what is in the names of tracks alone, and the layers' clock in its track."""
    names = [str(build(_TrackName, event).args.get("name")) for event in events if event.get("ph") == "M"]
    if len(names) < 2:
        raise ValueError("it names no method and no engine")
    kind = names[1].partition("(")[2].partition(")")[0]
    timed = [
        replace(item, args={**item.args, "clock": "device"})
        if item.cat == "layer" and item.tid == _OLD_DEVICE_TRACK
        else item
        for item in slices
    ]
    return replace(other, method=names[0].removeprefix("method "), engine_kind=kind), timed


def _runs(traces: Sequence[_Trace], places: Mapping[tuple[str, str], int]) -> Iterator[Run]:
    """A run is over when one of its engines is called again."""
    number = 0
    for method, of_method in sorted(grouped(traces, lambda trace: trace.method).items()):
        own = [(call, places[trace.key]) for trace in of_method for call in trace.calls]
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
    profiles = {str(place): call.profile for place, call in calls.items()}
    return Run(method, number, wall, [], [], profiles, events)


def _event(item: _Slice, place: int, begin: float) -> Event:
    layer = item.cat == "layer"
    return Event(
        name=item.name,
        kind="layer" if layer else "delegate" if item.name == DELEGATE_EVENT else "phase",
        start_us=item.ts - begin,
        duration_us=item.dur,
        clock="device" if item.args.get("clock") == "device" else "host",
        instruction=place,
        metadata={key: value for key, value in item.args.items() if key != "call" and not layer},
    )
