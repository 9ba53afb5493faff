"""What engines of packages trace, and when."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from pt2_packages import Package

from executorch_tensorrt import OptimizationProfileGuard, aoti
from executorch_tensorrt.cli.app import app
from executorch_tensorrt.events import PHASES
from executorch_tensorrt.profiling import set_profiling
from executorch_tensorrt.profiling.traces import from_traces


@pytest.fixture
def runner(mixed: Package) -> Callable[..., list[torch.Tensor]]:
    return torch._inductor.aoti_load_package(str(mixed.path))


def slices(file: Path) -> list[dict[str, Any]]:
    return [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]


def calls_in(folder: Path) -> dict[str, int]:
    """The number of traced calls by file."""
    return {
        file.name: len([item for item in slices(file) if item["name"] == "torchtrt.delegate"])
        for file in folder.iterdir()
    }


def test_nothing_is_written_unless_it_was_asked_for(
    mixed: Package, run_python: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    code = """
import os, sys, torch, executorch_tensorrt
os.chdir(sys.argv[2])
torch._inductor.aoti_load_package(sys.argv[1])(torch.ones(2, 8))
"""
    assert run_python(code, str(mixed.path), str(tmp_path)).returncode == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("loaded_first", [False, True])
def test_traces_are_written_when_the_process_ends(
    mixed: Package, run_python: Callable[..., CompletedProcess[str]], tmp_path: Path, loaded_first: bool
) -> None:
    code = """
import sys, torch, executorch_tensorrt
path, folder, loaded_first = sys.argv[1:]
def set_all():
    torch.ops.executorch_tensorrt.set_profile_path_prefix(folder)
    torch.ops.executorch_tensorrt.set_profile_execution(True)
if not int(loaded_first):
    set_all()
runner = torch._inductor.aoti_load_package(path)
if int(loaded_first):
    runner(torch.ones(2, 8))
    set_all()
for _ in range(3):
    runner(torch.ones(2, 8))
"""
    result = run_python(code, str(mixed.path), str(tmp_path), str(int(loaded_first)))
    assert result.returncode == 0, result.stderr
    assert sorted(calls_in(tmp_path).values()) == [3, 3]


def test_traces_have_the_calls_in_between_and_a_set_each_time(runner: Any, tmp_path: Path) -> None:
    aoti.set_profile_path_prefix(tmp_path)
    for on in (1, 2):
        runner(torch.ones(2, 8))
        aoti.set_profile_execution(True)
        for _ in range(on):
            runner(torch.ones(2, 8))
        aoti.set_profile_execution(False)
        runner(torch.ones(2, 8))
        assert len(calls_in(tmp_path)) == 2 * on
    assert sorted(calls_in(tmp_path).values()) == [1, 1, 2, 2]


def test_traces_have_phases_layers_and_profiles(runner: Any, mixed: Package, tmp_path: Path) -> None:
    set_profiling("layers", format="perfetto", path_prefix=tmp_path)
    runner(torch.ones(2, 8))
    with OptimizationProfileGuard(1):
        runner(torch.ones(8, 8))
    set_profiling("off")
    runner(torch.ones(2, 8))
    for engine in mixed.compiled.engines:
        (file,) = tmp_path.glob(f"package-{engine['engine_id']}-*.perfetto.json")
        events = slices(file)
        assert {item["name"] for item in events if item["cat"] == "phase"} == {*PHASES, "torchtrt.delegate"}
        assert any(item["cat"] == "layer" for item in events)
        assert {item["args"]["profile"] for item in events} == {0, 1}


def test_traces_of_a_lower_level_have_less(runner: Any, tmp_path: Path) -> None:
    set_profiling("phases", format="perfetto", path_prefix=tmp_path)
    runner(torch.ones(2, 8))
    set_profiling("off")
    runner(torch.ones(2, 8))
    assert all(item["cat"] == "phase" for file in tmp_path.iterdir() for item in slices(file))


def test_two_packages_trace_an_engine_each(runner: Any, cache: Package, tmp_path: Path) -> None:
    other = aoti.load(cache.path)
    aoti.set_profile_path_prefix(tmp_path)
    aoti.set_profile_format("trex")
    aoti.set_profile_execution(True)
    for _ in range(2):
        runner(torch.ones(2, 8))
    other(torch.ones(1, 1, 4), torch.tensor([0]))
    aoti.set_profile_execution(False)
    runner(torch.ones(2, 8))
    other(torch.ones(1, 1, 4), torch.tensor([0]))
    counts = [json.loads(file.read_text())[0] for file in tmp_path.glob("*.trex.json")]
    assert sorted(item["count"] for item in counts) == [1, 2, 2]


def test_settings_are_changed_while_a_package_runs(runner: Any, mixed: Package, tmp_path: Path) -> None:
    aoti.set_profile_path_prefix(tmp_path)
    over = threading.Event()

    def flip() -> None:
        while not over.is_set():
            aoti.set_profile_execution(True)
            aoti.set_profile_execution(False)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for _ in range(100):
            with torch.no_grad():
                torch.testing.assert_close(runner(x := torch.randn(2, 8)), list(mixed.model(x)))
    finally:
        over.set()
        thread.join()
    runner(torch.ones(2, 8))
    assert all(slices(file) for file in tmp_path.iterdir())


def test_slices_are_in_torchs_profiler(runner: Any, tmp_path: Path) -> None:
    def names() -> set[str]:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            runner(torch.ones(2, 8))
        return {event.name for event in profile.events() or []}

    operator = "executorch_tensorrt::execute_engine"
    assert {name for name in names() if name.startswith(("torchtrt.", operator))} == {operator}
    set_profiling("phases")
    found = {name for name in names() if name.startswith(("torchtrt.", operator))}
    assert found == {operator, "torchtrt.delegate", *PHASES}


def test_report_reads_the_traces(runner: Any, mixed: Package, tmp_path: Path) -> None:
    aoti.set_profile_path_prefix(tmp_path)
    aoti.set_profile_execution(True)
    for _ in range(3):
        runner(torch.ones(2, 8))
    aoti.set_profile_execution(False)
    runner(torch.ones(2, 8))
    session = from_traces(tmp_path)
    ids = [delegate.engine.engine_id for delegate in session.delegates if delegate.engine]
    assert ids == [engine["engine_id"] for engine in mixed.compiled.engines]
    assert [run.profiles for run in session.runs] == [{"0": 0, "1": 0}] * 3
    assert {delegate.method for delegate in session.delegates} == {"package"}
    assert {delegate.engine.kind for delegate in session.delegates if delegate.engine} == {"cpu"}
    assert session.level == "layers"
    session.save(tmp_path)
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "0 B" not in result.output  # traces do not tell the sizes of engines
    (tmp_path / "session.json").unlink()
    assert CliRunner().invoke(app, ["report", str(tmp_path)]).output.count(ids[0]) == result.output.count(ids[0]) > 0


def test_report_refuses_traces_of_several_processes(tmp_path: Path) -> None:
    for process in (1, 2):
        call = {"name": "torchtrt.delegate", "cat": "phase", "ts": 1.0, "dur": 1.0, "args": {"call": 0, "profile": 0}}
        text = {
            "otherData": {"engine_id": "0" * 12, "calls_dropped": 0},
            "traceEvents": [
                {"ph": "M", "name": "process_name", "pid": process, "args": {"name": "method package"}},
                {"ph": "M", "name": "thread_name", "pid": process, "args": {"name": "engine 0 (cpu)"}},
                {"ph": "X", "pid": process, **call},
            ],
        }
        (tmp_path / f"package-{process}.perfetto.json").write_text(json.dumps(text))
    with pytest.raises(ValueError, match="got 1, 2, allowed one"):
        from_traces(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": [], "otherData": {}}', '{"traceEvents": 1}'])
def test_report_refuses_what_is_no_trace(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.perfetto.json").write_text(text)
    with pytest.raises(ValueError, match="is no trace of an engine"):
        from_traces(tmp_path)
