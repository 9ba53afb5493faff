"""`etrt export`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import numpy as np
import pytest
import torch

from executorch_tensorrt import Module
from executorch_tensorrt.program import read_program

if TYPE_CHECKING:
    from conftest import Etrt

MODELS = """
import helper_beside_it
import torch
from executorch_tensorrt import Input

class Add(torch.nn.Module):
    def forward(self, x):
        return x + helper_beside_it.ONE

class Two(torch.nn.Module):
    def forward(self, ids, mask):
        return ids * mask

class Mixed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x):
        return torch.tanh(torch.cumsum(self.linear(x), 1))

class Branching(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] > 5 else x

ready = Add()

def with_inputs():
    return Add(), [Input((2, 4))]

def failing():
    raise RuntimeError("no weights")

def nothing():
    pass
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "some_models.py").write_text(MODELS)
    (folder / "helper_beside_it.py").write_text("ONE = 1\n")
    return folder / "some_models.py"


@pytest.fixture(autouse=True)
def _imports_are_undone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    assert sys.path == path
    for name in set(sys.modules) - modules & {"some_models", "helper_beside_it"}:
        if name in ("some_models", "helper_beside_it"):
            del sys.modules[name]


def run(program: Path, *inputs: np.ndarray) -> np.ndarray:
    return Module(program, optimization_profile="auto").forward(*inputs)[0]


def test_export_makes_a_program_with_the_declared_profiles(source: Path, tmp_path: Path, etrt: Etrt) -> None:
    output = tmp_path / "add.pte"
    result = etrt("export", f"{source}:Add", "-o", output, "--input", "float32[1:2:4|5:6:8,3]")
    assert "[0]=1:2:4|5:6:8" in result.stdout
    assert "tracing the model" in result.stderr
    for count in (1, 4, 5, 8):
        np.testing.assert_array_equal(run(output, np.zeros((count, 3), np.float32)), np.ones((count, 3)))


def test_export_shares_labelled_dims_and_takes_names(source: Path, tmp_path: Path, etrt: Etrt) -> None:
    output = tmp_path / "two.pte"
    inputs = ("--input", "mask=int64[1,S=2:4:8]", "--input", "ids=int64[1,S]")
    etrt("export", f"{source}:Two", "-o", output, *inputs)
    np.testing.assert_array_equal(run(output, *[np.full((1, 5), 3)] * 2), np.full((1, 5), 9))


@pytest.mark.parametrize("name", ["ready", "with_inputs"])
def test_export_takes_a_module_and_a_factory_with_inputs(name: str, source: Path, tmp_path: Path, etrt: Etrt) -> None:
    declared = ("--input", "float32[2,4]") if name == "ready" else ()
    etrt("export", f"{source}:{name}", "-o", tmp_path / "add.pte", *declared)
    np.testing.assert_array_equal(run(tmp_path / "add.pte", np.zeros((2, 4), np.float32)), np.ones((2, 4)))


def test_export_takes_an_importable_module(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etrt: Etrt
) -> None:
    monkeypatch.chdir(source.parent)
    etrt("export", "some_models:with_inputs", "-o", tmp_path / "add.pte", "--input", "float32[1,1:2:9]")
    assert run(tmp_path / "add.pte", np.zeros((1, 9), np.float32)).shape == (1, 9)


def test_export_takes_a_saved_program_with_its_own_ranges(tmp_path: Path, etrt: Etrt) -> None:
    rows = torch.export.Dim("rows", min=2, max=8)
    program = torch.export.export(torch.nn.Linear(4, 4), (torch.ones(3, 4),), dynamic_shapes=({0: rows},))
    torch.export.save(program, tmp_path / "linear.pt2")
    etrt("export", tmp_path / "linear.pt2", "-o", tmp_path / "linear.pte")
    assert read_program(tmp_path / "linear.pte").methods[0].inputs[0].sizes == (8, 4)


def test_export_says_that_it_runs_code_before_it_does(tmp_path: Path, etrt: Etrt) -> None:
    code = "import sys, torch\nprint('running', file=sys.stderr)\nmodel = torch.nn.ReLU()\n"
    (tmp_path / "some_models.py").write_text(code)
    model = f"{tmp_path}/some_models.py:model"
    result = etrt("export", model, "-o", tmp_path / "x.pte", "--input", "float32[2]", "--json")
    told, ran = (result.stderr.index(text) for text in (f"Note: this runs code from '{model}'", "running"))
    assert told < ran
    assert "Note" not in result.stdout
    json.loads(result.stdout)


class Runs:
    """What a pickle of it does when it is read."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("place", ["a pickle", "an expression"])
def test_export_of_a_saved_program_runs_code_from_it(place: str, tmp_path: Path, etrt: Etrt) -> None:
    """Why it says so. Where torch reads these safely one day, the page on trust can say less."""
    rows = torch.export.Dim("rows", min=2, max=8)
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(3, 4),), dynamic_shapes=({0: rows},))
    torch.export.save(program, tmp_path / "good.pt2")
    pickled = io.BytesIO()
    torch.save((Runs(tmp_path / "made"),), pickled)
    with ZipFile(tmp_path / "good.pt2") as good, ZipFile(tmp_path / "evil.pt2", "w") as evil:
        for name in good.namelist():
            data = good.read(name)
            if place == "a pickle" and "sample_inputs" in name:
                data = pickled.getvalue()
            elif place == "an expression" and name.endswith(".json"):
                code = f"__import__('os').mkdir('{tmp_path}/made') or ".encode()
                data = re.sub(rb'("expr_str": ")', rb"\1" + code, data, count=1)
            evil.writestr(name, data)
    result = etrt("export", tmp_path / "good.pt2", "-o", tmp_path / "x.pte")
    assert not (tmp_path / "made").exists()
    assert "Note: this runs code from" in result.stderr
    with contextlib.suppress(AssertionError):  # whether it fails afterwards is torch's affair
        etrt("export", tmp_path / "evil.pt2", "-o", tmp_path / "x.pte")
    assert (tmp_path / "made").is_dir()


def test_export_gives_json_and_an_etrecord(source: Path, tmp_path: Path, etrt: Etrt) -> None:
    output, etrecord = tmp_path / "mixed.pte", tmp_path / "mixed.etrecord"
    options = ("--torch-executed-op", "aten.cumsum", "--profiling", "phases", "--etrecord", etrecord, "--json")
    result = etrt("export", f"{source}:Mixed", "-o", output, "--input", "float32[1:2:8,4]", *options)
    report = json.loads(result.stdout)
    assert report["bytes"] == output.stat().st_size
    assert report["etrecord"] == str(etrecord)
    assert etrecord.stat().st_size > 0
    assert len(report["delegates"]) == 2
    assert any("cumsum" in name for name in report["left_outside"])
    assert set(report["seconds"]) == {"trace", "lower", "emit"}
    specs = [dict(delegate.compile_specs) for delegate in read_program(output).methods[0].delegates]
    assert all(spec["torchtrt_profile_level"] == b"phases" for spec in specs)


def test_export_builds_tensorrt_rtx_engines(source: Path, tmp_path: Path, etrt: Etrt) -> None:
    pytest.importorskip("tensorrt_rtx")
    output = tmp_path / "add.pte"
    options = ("--engine", "tensorrt_rtx", "--engine-option", "compute_capability=8.9")
    result = etrt("export", f"{source}:Add", "-o", output, "--input", "float32[1:2:4|5:6:8,3]", *options)
    assert "tensorrt_rtx" in result.stdout
    assert "for compute capability 8.9" in " ".join(etrt("inspect", output).stdout.split())


def test_export_keeps_blocks_that_are_too_small_outside(source: Path, tmp_path: Path, etrt: Etrt) -> None:
    options = ("--input", "float32[2,4]", "--min-block-size", 5)
    result = etrt("export", f"{source}:Add", "-o", tmp_path / "add.pte", *options)
    assert "etrt: warning: no operator went into an engine" in result.stderr
    assert "Outside engines" in result.stdout


def test_export_is_quiet_about_other_libraries(source: Path, tmp_path: Path) -> None:
    etrt = Path(sys.executable).with_name("etrt")
    command = [etrt, "export", f"{source}:with_inputs", "-o", tmp_path / "add.pte"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert all(line.startswith(("[", "Note: ")) for line in result.stderr.splitlines()), result.stderr


ADD_INPUT = ("--input", "float32[2,4]")


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ("{source}", (), "MODEL is not valid: got '"),
        ("{source}:missing", ADD_INPUT, "MODEL names nothing: got 'missing', allowed what '"),
        ("{source}:nothing", ADD_INPUT, "makes no model: got None, allowed torch.nn.Module"),
        ("{source}:failing", ADD_INPUT, "failed: RuntimeError: no weights"),
        ("nowhere.py:f", ADD_INPUT, "no Python file at 'nowhere.py'"),
        ("no.such.module:f", ADD_INPUT, "'no.such.module' cannot be imported: No module named 'no'"),
        ("nowhere.pt2", (), "no exported program at 'nowhere.pt2'"),
        ("{source}:Add", (), "has no declared inputs: got no --input"),
        ("{source}:Add", ("--input", "float32[9:1:2]"), "min_shape above opt_shape: got 9 > 1"),
        ("{source}:Add", (*ADD_INPUT, "--engine", "abacus"), "got 'abacus', allowed 'cpu'"),
        (
            "{source}:Add",
            (*ADD_INPUT, "--engine-option", "precision=fp16"),
            "unknown entry: got 'precision', allowed none",
        ),
        ("{source}:Add", (*ADD_INPUT, "--min-block-size", "0"), "0 is not in the range x>=1"),
        ("{source}:Add", (*ADD_INPUT, "--profiling", "deep"), "'deep' is not one of"),
        ("{source}:Branching", ("--input", "float32[1:2:9]"), "was narrowed when the model was traced"),
        ("{source}:Two", ADD_INPUT, "inputs do not fit the model's arguments"),
    ],
)
def test_export_names_what_is_wrong(
    model: str, options: tuple[str, ...], told: str, source: Path, tmp_path: Path, etrt: Etrt
) -> None:
    result = etrt("export", model.format(source=source), "-o", tmp_path / "bad.pte", *options, code=2)
    assert told in result.stderr
    assert not (tmp_path / "bad.pte").exists()


def test_export_says_that_a_file_has_no_model(tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "empty.py").touch()
    told = etrt("export", f"{tmp_path / 'empty.py'}:f", "-o", tmp_path / "bad.pte", *ADD_INPUT, code=2).stderr
    assert "empty.py' has: no class and no function." in told


def test_export_refuses_a_file_that_is_no_saved_program(tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "bad.pt2").write_text("no program")
    told = etrt("export", tmp_path / "bad.pt2", "-o", tmp_path / "bad.pte", code=2).stderr
    assert "is no exported program: got " in told


def test_export_looks_for_the_output_folder_first(tmp_path: Path, etrt: Etrt) -> None:
    told = etrt("export", "nowhere.py:f", "-o", tmp_path / "no" / "a.pte", code=2).stderr
    assert told == f"etrt: no folder '{tmp_path / 'no'}' for 'a.pte'; make it first\n"
