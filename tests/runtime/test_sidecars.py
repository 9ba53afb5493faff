"""Trace files of engines, and the options and the process-wide control that ask for them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from models import mixed, profiles, rows, two_inputs

from executorch_tensorrt import Input, Module, OptimizationProfileGuard, export
from executorch_tensorrt.profiling.control import clear_profiling, profiling_state, set_profiling

X = np.ones((2, 4), np.float32)
PHASES = 7


@pytest.fixture(autouse=True)
def _no_control_is_left() -> Iterator[None]:
    yield
    left = profiling_state().is_set
    clear_profiling()
    assert not left, "the test left the process-wide control set"


def only_file(folder: Path) -> Any:
    (path,) = folder.iterdir()
    return json.loads(path.read_text())


def slices(trace: Any) -> list[Any]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_perfetto_file_has_every_phase_and_layer_of_every_call(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="layers", profile_format="perfetto", profile_path_prefix=tmp_path)
    for _ in range(3):
        module.forward(X)
    assert list(tmp_path.iterdir()) == [], "nothing is written while calls run"
    assert module.unload_method()
    events = slices(only_file(tmp_path))
    assert {event["args"]["call"] for event in events} == {0, 1, 2}
    phases = [event["name"] for event in events if event["cat"] == "phase"]
    assert len(phases) == 3 * PHASES
    assert phases.count("torchtrt.delegate") == 3
    assert any(event["cat"] == "layer" for event in events)


def test_file_is_named_by_method_engine_and_process(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="phases", profile_format="trex", profile_path_prefix=tmp_path)
    module.forward(X)
    engine = module.last_selections[0].engine_id
    for _ in range(2):
        module.unload_method()
        module.forward(X)
    del module
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"forward-{engine}-{os.getpid()}{suffix}.trex.json" for suffix in ("", "-2", "-3"))


def test_trex_file_has_the_count_then_layers_by_profile(tmp_path: Path) -> None:
    # Not rows(): XNNPACK's own clock ticks in microseconds, so its smallest layers take 0.
    module = Module(two_inputs().buffer, profile_level="layers", profile_format="trex", profile_path_prefix=tmp_path)
    for index, length in ((0, 4), (1, 20), (1, 20)):
        with OptimizationProfileGuard(index):
            module.forward(*[np.ones((1, length), np.int64)] * 2)
    del module
    count, *layers = only_file(tmp_path)
    assert count == {"count": 3}
    assert all(set(layer) == {"name", "timeMs", "averageMs", "medianMs", "percentage"} for layer in layers)
    assert sum(layer["percentage"] for layer in layers) == pytest.approx(100)
    assert [layer["name"].endswith("[profile 1]") for layer in layers].count(True) == len(layers) // 2


def test_every_engine_has_a_file_of_its_own(tmp_path: Path) -> None:
    module = Module(mixed().buffer, profile_level="phases", profile_format="perfetto", profile_path_prefix=tmp_path)
    module.forward(torch.randn(2, 4), torch.randn(1, 4))
    engines = {selection.engine_id for selection in module.last_selections}
    del module
    assert {re.fullmatch(r"forward-(\w+)-\d+\.perfetto\.json", p.name)[1] for p in tmp_path.iterdir()} == engines  # type: ignore[index]


def test_sidecar_and_etdump_are_written_by_one_run(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="phases", profile_format="perfetto", profile_path_prefix=tmp_path)
    module.forward(X)
    module.write_etdump(tmp_path / "x.etdp")
    del module
    assert len(list(tmp_path.iterdir())) == 2


def test_level_off_writes_no_file(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="off", profile_format="perfetto", profile_path_prefix=tmp_path)
    module.forward(X)
    del module
    assert list(tmp_path.iterdir()) == []


def test_outputs_are_the_same_with_a_sidecar(tmp_path: Path) -> None:
    traced = Module(rows().buffer, profile_level="layers", profile_format="perfetto", profile_path_prefix=tmp_path)
    np.testing.assert_array_equal(traced.forward(X)[0], Module(rows().buffer).forward(X)[0])


def test_load_option_overrides_what_the_program_says(tmp_path: Path) -> None:
    program = export(rows().module, [Input(profiles=profiles((1, 2, 8), tail=(4,)))], profiling="phases").buffer

    def events(**options: Any) -> int:
        module = Module(program, profile_format="perfetto", profile_path_prefix=tmp_path, **options)
        module.forward(X)
        del module
        found = [len(slices(json.loads(path.read_text()))) for path in tmp_path.iterdir()]
        for path in tmp_path.iterdir():
            path.unlink()
        return sum(found)

    assert events() == PHASES, "the compile spec"
    assert events(profile_level="delegate") == 1, "the load-time option"
    assert events(profile_level="off") == 0


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"level": "layers", "format": "perfetto", "path_prefix": "{}"}, "'torchtrt_profile_format' in a program is"),
        ({"level": "off", "path_prefix": "/no/such"}, "'torchtrt_profile_path_prefix' in a program is ignored: got"),
    ],
)
def test_program_never_says_where_files_are_written(
    specs: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    written = [CompileSpec(f"torchtrt_profile_{key}", text.format(tmp_path).encode()) for key, text in specs.items()]
    monkeypatch.setattr("executorch_tensorrt.exporter.partitioner._profiling_specs", lambda _: written)
    program = export(rows().module, [Input(profiles=profiles((1, 2, 8), tail=(4,)))]).buffer
    for _ in range(2):
        module = Module(program)
        module.forward(X)
        del module
    assert list(tmp_path.iterdir()) == []
    told = [r.getMessage() for r in caplog.records if r.name == "executorch_tensorrt.runtime"]
    assert [message in text for text in told] == [True], "told once"


def test_program_says_a_format_for_the_folder_that_is_given(tmp_path: Path) -> None:
    said = {"level": "phases", "format": "trex"}
    program = export(rows().module, [Input(profiles=profiles((1, 2, 8), tail=(4,)))], profiling=said).buffer
    module = Module(program, profile_path_prefix=tmp_path)
    module.forward(X)
    del module
    assert [path.name.endswith(".trex.json") for path in tmp_path.iterdir()] == [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile_format": "json"}, "profile_format: got 'json', allowed 'etdump', 'perfetto', 'trex'"),
        ({"profile_format": "trex"}, "'trex' writes files: give 'torchtrt_profile_path_prefix' a folder"),
        (
            {"profile_format": "trex", "profile_path_prefix": ""},
            "'torchtrt_profile_path_prefix': got '', allowed a folder",
        ),
        ({"profile_format": "trex", "profile_path_prefix": "/no/such"}, "got '/no/such', allowed a folder that can be"),
        ({"profile_format": "trex", "profile_path_prefix": "/dev/null"}, "got '/dev/null', .* it is a file"),
        ({"profile_path_prefix": "x" * 300}, "got 300 bytes, allowed 255"),
    ],
)
def test_wrong_options_are_errors_of_loading(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Module(rows().buffer, profile_level="layers", **options).load_method()


def test_full_disk_is_reported_once_and_the_result_is_returned(
    run_python: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "rows.pte").write_bytes(rows().buffer)
    code = """
import resource, sys
import numpy as np
from executorch_tensorrt import Module

folder = sys.argv[1]
module = Module(folder + "/rows.pte", profile_level="layers", profile_format="perfetto", profile_path_prefix=folder)
for _ in range(200):
    (output,) = module.forward(np.ones((2, 4), np.float32))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # as a full disk: writing stops half-way
del module
print(output.shape)
"""
    result = run_python(code, str(tmp_path))
    assert result.stdout.strip() == "(2, 4)", result.stderr
    assert result.stderr.count("cannot write") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.pte"]


def test_control_reaches_loaded_modules_at_their_next_call(tmp_path: Path) -> None:
    module = Module(rows().buffer)
    module.forward(X)
    set_profiling("phases", format="perfetto", path_prefix=tmp_path)
    for _ in range(2):
        module.forward(X)
    set_profiling("off")
    assert list(tmp_path.iterdir()) == [], "applied by the next call, not by the setter"
    module.forward(X)
    assert len(slices(only_file(tmp_path))) == 2 * PHASES
    module.forward(X)
    clear_profiling()
    assert len(list(tmp_path.iterdir())) == 1


def test_control_gives_way_to_what_was_loaded_when_cleared(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="delegate", profile_format="perfetto", profile_path_prefix=tmp_path)
    set_profiling("off")
    module.forward(X)
    clear_profiling()
    module.forward(X)
    del module
    counts = sorted(len(slices(json.loads(path.read_text()))) for path in tmp_path.iterdir())
    assert counts == [1]


def test_control_switches_layers_on_and_off(tmp_path: Path) -> None:
    module = Module(rows().buffer, etdump=True)
    expected = module.forward(X)[0]
    for level, kinds in [("layers", {"phase", "layer"}), ("phases", {"phase"}), ("layers", {"phase", "layer"})]:
        set_profiling(level, format="perfetto", path_prefix=tmp_path)
        np.testing.assert_array_equal(module.forward(X)[0], expected)
        set_profiling("off")
        module.forward(X)
        assert {event["cat"] for event in slices(only_file(tmp_path))} == kinds
        next(tmp_path.iterdir()).unlink()
    clear_profiling()


def test_control_can_be_read_and_counts_its_changes(tmp_path: Path) -> None:
    before = profiling_state()
    assert not before.is_set
    set_profiling("layers", format="trex", path_prefix=tmp_path)
    state = profiling_state()
    assert (state.is_set, state.level, state.format, state.path_prefix) == (True, "layers", "trex", str(tmp_path))
    assert state.generation == before.generation + 1
    clear_profiling()
    assert profiling_state().generation == before.generation + 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "all"}, "'torchtrt_profile_level': got 'all', allowed 'off', 'delegate', 'phases', 'layers'"),
        ({"level": "layers", "format": "chrome"}, "'torchtrt_profile_format': got 'chrome', allowed 'etdump'"),
        ({"level": "layers", "format": "trex"}, "give 'torchtrt_profile_path_prefix' a folder"),
        ({"level": "layers", "format": "trex", "path_prefix": "/no/such"}, "No such file or directory"),
    ],
)
def test_control_refuses_wrong_values_and_stays_as_it_was(arguments: dict[str, Any], message: str) -> None:
    before = profiling_state().generation
    with pytest.raises(ValueError, match=message):
        set_profiling(**arguments)
    assert profiling_state().generation == before
