"""What engines on a device leave in a trace: device times of calls and of layers, never waited for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.python_engine import FakeCuda
from runtime.device_programs import Load, doubled

from executorch_tensorrt import CudaStreamGuard, Module, _native
from executorch_tensorrt.profiling import Session, capture, from_etdump, processors

VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)
LONG = np.concatenate([VALUES] * 3)
WORK_US = 1000  # of the fake device's clock


def session_of(module: Module, path: Path, program: bytes) -> Session:
    module.write_etdump(path)
    return from_etdump(program, path)


def captured(cuda: FakeCuda, inputs: list[tuple[Any, ...]], **options: Any) -> Session:
    _native.register_engine_runtime("tensorrt_rtx", doubled().runtime(cuda))
    return capture(doubled().program, inputs, runs=4, warmup=1, **options)


@pytest.mark.parametrize("level", ["phases", "layers"])
def test_device_time_of_calls_is_traced_by_profile(level: Any, cuda: FakeCuda) -> None:
    session = captured(cuda, [(VALUES,), (cuda.array(LONG),)], level=level)
    first, second = processors.device_times(session)
    assert [(row.profile, row.calls, row.returned_early) for row in (first, second)] == [(0, 2, 0), (1, 2, 0)]
    assert (first.time.median_us, second.time.median_us) == (WORK_US, WORK_US)


def test_layers_are_traced_on_the_devices_clock(cuda: FakeCuda) -> None:
    layers = processors.layers(captured(cuda, [(VALUES,)], level="layers"))
    assert [(layer.name, layer.clock, layer.time.count) for layer in layers] == [
        ("linear", "device", 4),
        ("relu", "device", 4),
    ]
    assert [layer.time.median_us for layer in layers] == pytest.approx([500, 250], rel=0.01)


def test_layers_have_the_same_names_in_all_profiles(cuda: FakeCuda) -> None:
    """TensorRT says the profile in the names of all but the first."""
    runtime = doubled().runtime(cuda)
    runtime.layers = [("linear [profile 1]", 0.5), ("linear [profile 1]", 0.5)]
    _native.register_engine_runtime("tensorrt_rtx", runtime)
    session = capture(doubled().program, (LONG,), runs=2, level="layers")
    assert {layer.name for layer in processors.layers(session)} == {"linear", "linear #1"}


@pytest.mark.parametrize("level", ["off", "delegate"])
def test_device_is_not_timed_below_level_phases(level: Any, cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled(), profile_level=level)
    cuda.take_log()
    for _ in range(3):
        module.forward(cuda.array(VALUES))
    log = "\n".join(cuda.take_log())
    assert "EventRecord" not in log
    assert "EventElapsedTime" not in log
    assert runtime.named("take_layers") == []


def test_device_time_of_a_call_that_returned_early_comes_with_the_next(
    cuda: FakeCuda, load: Load, tmp_path: Path
) -> None:
    module, _ = load(doubled(), profile_level="phases")
    array, stream = cuda.array(VALUES), cuda.stream()
    with CudaStreamGuard(stream):
        for _ in range(3):
            module.forward(array)
            cuda.run(stream)
    session = session_of(module, tmp_path / "x.etdp", doubled().program)
    said = [event.metadata for run in session.runs for event in run.events if event.kind == "delegate"]
    assert [(item.get("returned_early"), item.get("device_ns")) for item in said] == [
        (True, 1000 * WORK_US),
        (True, 1000 * WORK_US),
        (True, None),
    ]
    (row,) = processors.device_times(session)
    assert (row.calls, row.returned_early, row.time.count) == (3, 3, 2)


def test_device_time_is_lost_rather_than_waited_for(cuda: FakeCuda, load: Load, tmp_path: Path) -> None:
    module, _ = load(doubled(), profile_level="layers")
    stream = cuda.stream()
    with CudaStreamGuard(stream):
        for _ in range(3):
            module.forward(cuda.array(VALUES))
        assert cuda.pending(stream) > 0
    assert processors.device_times(session_of(module, tmp_path / "x.etdp", doubled().program)) == []
    cuda.run(stream)


def test_staged_bytes_are_traced(cuda: FakeCuda) -> None:
    _native.register_engine_runtime("tensorrt_rtx", doubled("host").runtime(cuda))
    (row,) = processors.phases(capture(doubled("host").program, (VALUES,), runs=2, level="phases"))
    assert row.staged_bytes == 2 * VALUES.nbytes


def test_trace_file_has_device_times(cuda: FakeCuda, load: Load, tmp_path: Path) -> None:
    module, _ = load(doubled(), profile_level="layers", profile_format="perfetto", profile_path_prefix=tmp_path)
    array, stream = cuda.array(VALUES), cuda.stream()
    module.forward(array)
    with CudaStreamGuard(stream):
        for _ in range(2):
            module.forward(array)
            cuda.run(stream)
    module.unload_method()
    (path,) = tmp_path.iterdir()
    slices = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    calls = [event["args"] for event in slices if event["name"] == "torchtrt.delegate"]
    assert [item["device_ns"] for item in calls] == [1000 * WORK_US] * 3
    assert [item.get("returned_early") for item in calls] == [None, True, True]
    # Of the last call nobody can ask: its stream may be gone.
    assert [event["args"]["call"] for event in slices if event["name"] == "linear"] == [0, 1]
