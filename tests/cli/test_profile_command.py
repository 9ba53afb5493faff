"""`etrt profile`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executorch_tensorrt.profiling import Session

if TYPE_CHECKING:
    from conftest import Etrt

MIXED = ("--input", "random:float32[2,4]", "--input", "random:float32[1,4]")


def test_profile_keeps_a_session(programs: Path, tmp_path: Path, etrt: Etrt) -> None:
    output = etrt("profile", programs / "mixed.pte", *MIXED, "--runs", 5, "-o", tmp_path / "run").stdout
    assert "5 runs at level layers" in output
    assert f"etrt report {tmp_path / 'run'}" in output
    session = Session.load(tmp_path / "run")
    assert len(session.runs) == 5
    assert session.program["name"] == "mixed.pte"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["session.json", "trace.etdp"]


def test_profile_takes_sets_of_inputs_in_turn(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    inputs = ("--input", "ones:float32[2,4]", "--input", "ones:float32[40,4]")
    output = etrt("profile", rows, *inputs, "--runs", 6, "--level", "delegate", "-o", tmp_path).stdout
    assert "(2, 4)" in output
    session = Session.load(tmp_path)
    assert [run.shapes for run in session.runs] == [[[2, 4]], [[40, 4]]] * 3
    assert [run.profiles["0"] for run in session.runs] == [0, 1] * 3


@pytest.mark.parametrize("format", ["perfetto", "trex"])
def test_profile_writes_trace_files(format: str, rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    etrt("profile", rows, "--input", "ones:float32[2,4]", "--format", format, "-o", tmp_path)
    (file,) = tmp_path.glob(f"*.{format}.json")
    assert json.loads(file.read_text())


def test_profile_replaces_an_earlier_session(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    for count in (3, 2):
        etrt("profile", rows, "--input", "ones:float32[2,4]", "--runs", count, "-o", tmp_path)
        assert len(Session.load(tmp_path).runs) == count


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "another number of inputs: got 0 --input, allowed 1, or a multiple of it"),
        (("--input", "ones:float32[2,4]", "--method", "m" * 10_000), "m" * 80),
        (("--input", "ones:float32[70,4]"), "dim 0: got 70"),
        (("--input", "ones:float32[2,4]", "--level", "off"), "'off' is not one of 'delegate', 'phases', 'layers'"),
        (("--input", "ones:float32[2,4]", "--runs", 0), "0 is not in the range"),
        (("--input", "ones:float32[2,4]", "--optimization-profile", 7), "7"),
    ],
)
def test_profile_tells_mistakes_in_one_line(
    arguments: tuple[object, ...], told: str, rows: Path, tmp_path: Path, etrt: Etrt
) -> None:
    assert told in etrt("profile", rows, *arguments, "-o", tmp_path / "run", code=2).stderr
    assert not (tmp_path / "run" / "session.json").exists()


def test_profile_needs_an_output(rows: Path, etrt: Etrt) -> None:
    assert "Missing option '-o'" in etrt("profile", rows, "--input", "ones:float32[2,4]", code=2).stderr


@pytest.mark.parametrize("name", ["file", "file/below", "n" * 10_000, "/proc/run"], ids=lambda name: name[:10])
def test_profile_refuses_an_output_that_cannot_be_written(name: str, rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "file").write_text("mine")
    etrt("profile", rows, "--input", "ones:float32[2,4]", "-o", tmp_path / name, code=2)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"no program"])
def test_profile_refuses_what_is_no_program(content: bytes, tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "a.pte").write_bytes(content)
    etrt("profile", tmp_path / "a.pte", "-o", tmp_path / "run", code=2)
    etrt("profile", tmp_path / "gone.pte", "-o", tmp_path / "run", code=2)
