"""Sessions from engines' Perfetto traces: what they say in fields, and where those of earlier versions have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from executorch_tensorrt.profiling.traces import from_traces


def trace(other: dict[str, Any], *, track: int = 3, **layer_args: Any) -> str:
    """Of one call with one layer."""
    call: dict[str, Any] = {"call": 0, "profile": 0}
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "method (a) decode"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "engine 0 (tensorrt): phases"}},
        {"ph": "X", "name": "torchtrt.delegate", "cat": "phase", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "args": call},
        {"ph": "X", "name": "conv", "cat": "layer", "pid": 1, "tid": track, "ts": 2, "dur": 3}
        | {"args": call | layer_args},
    ]
    return json.dumps({"otherData": {"engine_id": "0", "calls_dropped": 0, **other}, "traceEvents": events})


def read(folder: Path, text: str) -> tuple[str, str, str]:
    """The method, the engine's kind and the layer's clock."""
    (folder / "x.perfetto.json").write_text(text)
    session = from_traces(folder)
    (delegate,) = session.delegates
    (layer,) = [event for event in session.runs[0].events if event.kind == "layer"]
    assert delegate.engine is not None
    return delegate.method, delegate.engine.kind, layer.clock


@pytest.mark.parametrize("track", [2, 3, 7])
@pytest.mark.parametrize("clock", ["host", "device"])
def test_traces_are_read_by_their_fields_and_not_by_what_is_shown(tmp_path: Path, track: int, clock: str) -> None:
    text = trace({"method": "(b)", "engine_kind": "my (own)"}, track=track, clock=clock)
    assert read(tmp_path, text) == ("(b)", "my (own)", clock)


@pytest.mark.parametrize(("track", "clock"), [(2, "host"), (3, "device")])
def test_traces_of_earlier_versions_are_read_by_what_is_shown(tmp_path: Path, track: int, clock: str) -> None:
    assert read(tmp_path, trace({}, track=track)) == ("(a) decode", "tensorrt", clock)


@pytest.mark.parametrize("other", ["[]", '"engine_kind"', '{"engine_kind": "cpu"}'])
def test_trace_without_what_it_has_to_say_is_refused(tmp_path: Path, other: str) -> None:
    text = json.loads(trace({})) | {"otherData": json.loads(other)}
    (tmp_path / "x.perfetto.json").write_text(json.dumps(text))
    with pytest.raises(ValueError, match="is no trace of an engine"):
        from_traces(tmp_path)
