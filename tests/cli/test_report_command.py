"""`etrt report`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import models
import numpy as np
import pytest

from executorch_tensorrt.profiling import capture

if TYPE_CHECKING:
    from conftest import Etrt


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captured")
    capture(models.mixed().buffer, (np.ones((2, 4), np.float32), np.ones((1, 4), np.float32)), runs=4, output=folder)
    return folder


@pytest.fixture
def run(captured: Path, tmp_path: Path) -> Path:
    """A folder with a session, of this test alone."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("session.json", "trace.etdp"):
        (folder / name).write_bytes((captured / name).read_bytes())
    return folder


def test_report_prints_the_six_questions(captured: Path, etrt: Etrt) -> None:
    output = etrt("report", captured).stdout
    for title in (
        "Which delegate regions ran",
        "Host time of each delegate",
        "Binding, staging, enqueue and synchronisation",
        "Dominant layers",
        "Time between delegates",
        "Graph regions",
    ):
        assert f"\n{title}\n" in output
    assert output == etrt("report", captured / "session.json").stdout


def test_report_prints_json(captured: Path, etrt: Etrt) -> None:
    assert json.loads(etrt("report", captured, "-r", "json").stdout)["runs"] == 4


@pytest.mark.parametrize(
    ("renderer", "count"), [("html", 1), ("perfetto", 1), ("trex", 2)], ids=["html", "perfetto", "trex"]
)
def test_report_writes_beside_the_session(renderer: str, count: int, run: Path, etrt: Etrt) -> None:
    before = set(run.iterdir())
    output = etrt("report", run, "-r", renderer).stdout
    written = set(run.iterdir()) - before
    assert len(written) == count
    assert sorted(output.splitlines()) == sorted(f"Wrote {path}" for path in written)


def test_report_writes_where_it_is_told(captured: Path, tmp_path: Path, etrt: Etrt) -> None:
    etrt("report", captured, "-r", "perfetto", "-o", tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    etrt("report", captured, "-o", tmp_path / "report.txt")
    assert "Dominant layers" in (tmp_path / "report.txt").read_text()
    etrt("report", captured, "-r", "trex", "-o", tmp_path / "new")
    assert len(list((tmp_path / "new").iterdir())) == 2
    etrt("report", captured, "-r", "html", "-o", tmp_path / "new")
    assert (tmp_path / "new" / "report.html").is_file()


def test_report_prints_what_is_written_else_when_asked_to(captured: Path, etrt: Etrt) -> None:
    assert json.loads(etrt("report", captured, "-r", "perfetto", "-o", "-").stdout)["traceEvents"]


def test_report_compares(captured: Path, etrt: Etrt) -> None:
    output = etrt("report", "--compare", captured, captured).stdout
    assert "Before and after" in output
    assert "1.00" in output
    report = json.loads(etrt("report", "--compare", captured, captured, "-r", "json").stdout)
    assert report["differences"] == []


def test_report_joins_sessions_of_several_methods(captured: Path, run: Path, etrt: Etrt) -> None:
    from executorch_tensorrt.profiling import Session

    session = Session.load(run)
    replace(
        session,
        delegates=[replace(item, method="decode") for item in session.delegates],
        runs=[replace(item, method="decode") for item in session.runs],
        startup=[],
    ).save(run)
    report = json.loads(etrt("report", captured, run, "-r", "json").stdout)
    assert [item["delegate"]["method"] for item in report["regions"]] == ["forward"] * 3 + ["decode"] * 3
    assert "each once; give one of them, or compare two" in etrt("report", captured, captured, code=2).stderr


def test_report_takes_an_etdump_with_its_program(captured: Path, programs: Path, tmp_path: Path, etrt: Etrt) -> None:
    dump = captured / "trace.etdp"
    report = json.loads(etrt("report", dump, "--program", programs / "mixed.pte", "-r", "json").stdout)
    assert report["regions"][0]["time"]["count"] == 4
    told = etrt("report", dump, "--program", programs / "rows.pte", code=2).stderr
    assert "of another program or method" in told
    told = etrt("report", captured, "--program", programs / "mixed.pte", code=2).stderr
    assert "is a folder: got --program, which is for an ETDump; leave --program out" in told
    (tmp_path / "empty.etdp").touch()
    assert "is no ETDump" in etrt("report", tmp_path / "empty.etdp", "--program", programs / "rows.pte", code=2).stderr
    (tmp_path / "half.etdp").write_bytes(dump.read_bytes()[:5000])
    assert "truncated" in etrt("report", tmp_path / "half.etdp", "--program", programs / "rows.pte", code=2).stderr


@pytest.mark.parametrize("text", ["", "{}", '{"version": 99}', "\x00", '{"version": 1}', "[" * 100_000])
def test_report_refuses_what_is_no_session(text: str, tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "session.json").write_text(text)
    etrt("report", tmp_path, code=2)
    etrt("report", tmp_path / "gone", code=2)


def test_report_tells_how_to_get_a_session_of_a_program(rows: Path, etrt: Etrt) -> None:
    told = etrt("report", rows, code=2).stderr
    assert told == f"etrt: '{rows}' is a program, no session; give the folder that 'etrt profile {rows} -o ...' wrote\n"


def test_report_refuses_a_session_cut_at_any_place(run: Path, etrt: Etrt) -> None:
    text = (run / "session.json").read_bytes()
    for size in range(0, len(text), len(text) // 12):
        (run / "session.json").write_bytes(text[:size])
        assert "is no session" in etrt("report", run, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "wrong number of sessions: got 0, allowed one or more"),
        (("--compare", "a"), "wrong number of sessions: got 1, allowed two with --compare"),
        (("--compare", "a", "b", "-r", "html"), "--compare has no such renderer: got 'html'"),
        (("-r", "svg", "a"), "'svg' is not one of"),
        (("n" * 10_000,), "n"),
    ],
)
def test_report_tells_mistakes_in_one_line(arguments: tuple[str, ...], told: str, etrt: Etrt) -> None:
    assert told in etrt("report", *arguments, code=2).stderr


def test_report_refuses_an_output_that_cannot_be_written(captured: Path, tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "file").write_text("mine")
    below_file, below_nothing = tmp_path / "file" / "report.html", tmp_path / "gone" / "report.html"
    for output in (below_file, below_nothing, tmp_path / ("n" * 10_000), "/proc/report.html"):
        etrt("report", captured, "-r", "html", "-o", output, code=2)
    etrt("report", captured, "-r", "trex", "-o", tmp_path / "file", code=2)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_report_refuses_a_folder_without_permission(run: Path, etrt: Etrt) -> None:
    run.chmod(0o555)
    assert "Permission denied" in etrt("report", run, "-r", "html", code=2).stderr
    run.chmod(0o755)


def test_report_says_that_there_are_no_layers(tmp_path: Path, etrt: Etrt) -> None:
    capture(models.rows().buffer, (np.ones((2, 4), np.float32),), runs=1, level="phases", output=tmp_path)
    assert "capture with --level layers" in etrt("report", tmp_path, "-r", "trex", code=2).stderr
