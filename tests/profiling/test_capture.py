"""Capturing runs of real programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest
from session_factory import tiny_session

from executorch_tensorrt import ExecuTorchError, OptimizationProfileGuard
from executorch_tensorrt.profiling import Session, capture, merge
from executorch_tensorrt.profiling.etdump import read_etdump


def rows_of(count: int) -> tuple[Any, ...]:
    return (np.ones((count, 4), np.float32),)


def mixed_inputs(rows: int) -> tuple[Any, ...]:
    return np.ones((rows, 4), np.float32), np.ones((1, 4), np.float32)


@pytest.fixture(scope="module")
def session() -> Session:
    return capture(models.mixed().buffer, [mixed_inputs(2), mixed_inputs(20)], runs=6, warmup=1)


def test_capture_keeps_runs_in_turn(session: Session) -> None:
    assert [run.shapes[0] for run in session.runs] == [[2, 4], [20, 4]] * 3
    assert [run.number for run in session.runs] == list(range(6))
    assert [run.profiles for run in session.runs] == [{"0": 0, "3": 0}, {"0": 1, "3": 1}] * 3
    assert {dtype for run in session.runs for dtype in run.dtypes} == {"float32"}


def test_capture_joins_delegates_operators_and_layers(session: Session) -> None:
    for run in session.runs:
        kinds = {(event.kind, event.instruction) for event in run.events}
        assert {("method", -1), ("call", 0), ("call", 1), ("operator", 2), ("call", 3)} <= kinds
        assert {("delegate", 0), ("phase", 0), ("layer", 0), ("layer", 3)} <= kinds
        assert ("layer", 1) not in kinds  # XNNPACK's events are its own
        (whole,) = (event for event in run.events if event.kind == "method")
        assert 0 < whole.duration_us <= run.wall_us
        assert all(event.start_us >= 0 for event in run.events)


def test_capture_ties_layers_to_lines_of_the_model(session: Session) -> None:
    from executorch_tensorrt.profiling.processors import layers, regions

    rows = layers(session)
    assert rows
    for row in rows:
        assert {source.location.rpartition(":")[0] for source in row.sources} == {"tests/models.py"}
    linear = next(row for row in rows if row.name.startswith("Fully Connected"))
    assert {source.op for source in linear.sources} == {"aten.linear.default"}
    first = next(region for region in regions(session) if region.delegate.index == 0)
    assert sorted(first.modules) == ["dynamic", "static"]
    assert session.notes == []


def test_capture_tells_where_and_what(session: Session) -> None:
    assert session.level == "layers"
    assert session.program["size_bytes"] == len(models.mixed().buffer)
    assert {"executorch-tensorrt", "executorch", "python"} <= session.versions.keys()
    assert session.machine["cores"]
    (startup,) = session.startup
    assert startup.load_us > 0
    assert len(startup.first_calls_us) == 2


def test_capture_counts_calls_without_warm_up() -> None:
    session = capture(models.rows().buffer, rows_of(2), runs=3, warmup=0)
    assert session.startup[0].first_calls_us == [session.runs[0].wall_us]


@pytest.mark.parametrize(("level", "kinds"), [("delegate", {"delegate"}), ("phases", {"delegate", "phase"})])
def test_capture_traces_the_level(level: Any, kinds: set[str]) -> None:
    session = capture(models.rows().buffer, rows_of(2), runs=2, level=level)
    assert {event.kind for run in session.runs for event in run.events} == {"method", "call", *kinds}


@pytest.mark.parametrize(("profile", "used"), [("auto", 0), (None, 0), (1, 1)])
def test_capture_uses_the_profile_asked_for(profile: Any, used: int) -> None:
    session = capture(models.rows().buffer, rows_of(6), runs=1, optimization_profile=profile)
    assert session.runs[0].profiles == {"0": used}


def test_capture_leaves_a_guard_in_force() -> None:
    with OptimizationProfileGuard(1):
        assert capture(models.rows().buffer, rows_of(6), runs=1).runs[0].profiles == {"0": 1}


def test_capture_writes_session_and_etdump(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    session = capture(models.rows().buffer, rows_of(2), runs=4, output=folder)
    assert Session.load(folder) == session
    assert sorted(path.name for path in folder.iterdir()) == ["session.json", "trace.etdp"]
    executed = [block for block in read_etdump(folder / "trace.etdp") if block.name == "Execute"]
    assert len(executed) == 4


@pytest.mark.parametrize("format", ["perfetto", "trex"])
def test_capture_writes_a_trace_file_for_each_engine(format: Any, tmp_path: Path) -> None:
    session = capture(models.mixed().buffer, mixed_inputs(2), runs=2, format=format, output=tmp_path)
    files = sorted(tmp_path.glob(f"*.{format}.json"))
    engines = sorted(delegate.engine.engine_id for delegate in session.delegates if delegate.engine)
    assert [path.name.split("-")[1] for path in files] == engines
    for path in files:
        assert json.loads(path.read_text())


def test_capture_without_output_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    capture(models.rows().buffer, rows_of(2), runs=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"runs": 0}, "runs: got 0, allowed 1 or more"),
        ({"warmup": -1}, "warmup: got -1, allowed 0 or more"),
        ({"level": "off"}, "level: got 'off', allowed 'delegate', 'phases', 'layers'"),
        ({"format": "trex"}, "output: got none, allowed a folder with format='trex'"),
        ({"format": "svg"}, "profile_format: got 'svg'"),
        ({"method": "m" * 10_000}, "no such method: got 'm{80}', allowed 'forward'"),
        ({"inputs": np.ones(3)}, "inputs: got ndarray, allowed a tuple"),
        ({"inputs": []}, "inputs: got list, allowed a tuple"),
        ({"inputs": (np.ones((70, 4), np.float32),)}, "dim 0: got 70 in"),
        ({"program": b"no program"}, "program"),
    ],
)
def test_capture_refuses_wrong_arguments(change: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, ExecuTorchError), match=told):
        capture(**{"program": models.rows().buffer, "inputs": rows_of(2), "runs": 1, **change})


def test_capture_refuses_an_output_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="the output .*file' is a file; give a folder"):
        capture(models.rows().buffer, rows_of(2), runs=1, output=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_merge_joins_methods_of_one_program() -> None:
    session = capture(models.rows().buffer, rows_of(2), runs=2)
    delegates = [replace(item, method="decode") for item in session.delegates]
    runs = [replace(run, method="decode") for run in session.runs]
    startup = [replace(item, method="decode") for item in session.startup]
    other = replace(session, delegates=delegates, runs=runs, startup=startup)
    merged = merge([session, other])
    assert [run.method for run in merged.runs] == ["forward"] * 2 + ["decode"] * 2
    assert merged.delegates_by_place()["decode", 0] == delegates[0]
    assert merge([session]) == session
    with pytest.raises(ValueError, match="got methods forward, forward, allowed each once"):
        merge([session, session])
    with pytest.raises(ValueError, match="got several programs or levels"):
        merge([session, replace(other, level="phases")])
    with pytest.raises(ValueError, match="got none"):
        merge([])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"machine": {"processor": "x86_64", "cores": 4, "platform": "Linux"}}, "cores 2 and 4"),
        ({"machine": {"processor": "x86_64", "cores": 2, "platform": "Linux", "gpu": "B"}}, "gpu unknown and B"),
        ({"versions": {"executorch-tensorrt": "0.2.0"}}, "executorch-tensorrt 0.1.0 and 0.2.0"),
    ],
)
def test_merge_refuses_several_machines_and_versions(change: dict[str, Any], told: str) -> None:
    first, second = tiny_session(), tiny_session(runs=[], **change)
    with pytest.raises(ValueError, match=f"got several machines or versions, {told}, allowed one; report them apart"):
        merge([first, second])


def test_merged_session_was_created_when_the_last_was() -> None:
    first, second = tiny_session(created="2026-11-30"), tiny_session(created="2026-12-01", runs=[])
    assert merge([first, second]).created == merge([second, first]).created == "2026-12-01"
