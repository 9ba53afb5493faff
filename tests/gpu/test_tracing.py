"""Layers and durations that a GPU measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu.cuda import Stream, to_device, to_host
from gpu.prepared import Case

from executorch_tensorrt import CudaStreamGuard, Module
from executorch_tensorrt.profiling import Session, capture

Cases = Callable[[str], Case]


def events_of(session: Session, kind: str) -> list[list[Any]]:
    return [[event for event in run.events if event.kind == kind] for run in session.runs]


@pytest.mark.parametrize("call", ["first", "second"])
def test_layers_have_device_times(call: str, case: Cases) -> None:
    program = case("mlp")
    session = capture(program.path, tuple(program.calls[call].inputs), runs=3, level="layers")
    runs = events_of(session, "layer")
    assert all(runs)
    assert all(event.clock == "device" and event.duration_us >= 0 for run in runs for event in run)
    assert all(sum(event.duration_us for event in run) > 0 for run in runs)
    assert len({tuple(event.name for event in run) for run in runs}) == 1


def test_layers_are_those_of_the_profile_in_use(case: Cases) -> None:
    """Runs of both profiles in one capture each have their own layers."""
    program = case("mlp")
    calls = [tuple(program.calls[call].inputs) for call in ("first", "second")]
    session = capture(program.path, calls, runs=4, level="layers")
    assert [list(run.profiles.values()) for run in session.runs] == [[0], [1], [0], [1]]
    names = [[event.name for event in run] for run in events_of(session, "layer")]
    assert names[0] == names[2] != []
    assert names[1] == names[3] != []


@pytest.mark.parametrize("level", ["delegate", "phases"])
def test_no_layers_below_level_layers(level: Any, case: Cases) -> None:
    program = case("mlp")
    session = capture(program.path, tuple(program.calls["first"].inputs), runs=2, level=level)
    assert events_of(session, "layer") == [[], []]


@pytest.mark.parametrize("level", ["delegate", "phases", "layers"])
def test_tracing_changes_no_output(level: Any, case: Cases) -> None:
    program = case("block")
    plain = Module(program.path, optimization_profile="auto")
    traced = Module(program.path, optimization_profile="auto", profile_level=level)
    for call in ("first", "second", "first"):
        inputs = program.calls[call].inputs
        np.testing.assert_array_equal(plain.forward(*inputs)[0], traced.forward(*inputs)[0])


@pytest.mark.parametrize("format", ["perfetto", "trex"])
def test_trace_file_has_layers_of_calls_that_returned_early(format: Any, case: Cases, tmp_path: Path) -> None:
    """They are read when the work is known to be done, and none is lost at the end."""
    program = case("mlp")
    values = program.calls["first"]
    module = Module(program.path, profile_level="layers", profile_format=format, profile_path_prefix=tmp_path)
    inputs, stream = [to_device(array) for array in values.inputs], Stream()
    with CudaStreamGuard(stream.handle):
        for _ in range(5):
            outputs = module.forward(*inputs)
            stream.synchronize()
    values.assert_is([to_host(output) for output in outputs])
    module.unload_method()
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())
