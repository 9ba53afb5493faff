"""The page of what may be loaded from whom promises what tests show, and its table is what files hold."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from private_model import FILE, LINES, WEIGHTS, everything, private_model

from executorch_tensorrt import Input, aoti, export
from executorch_tensorrt.engines.builder import EnginesMissingError
from executorch_tensorrt.profiling import capture
from executorch_tensorrt.profiling.machine import describe_machine

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "trust.md").read_text()
NAMED = re.findall(r"<!-- (tests/\S+\.py)::(test_\w+) -->", PAGE)
INPUT = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_promise_has_its_test(file: str, name: str) -> None:
    assert f"def {name}(" in (REPOSITORY / file).read_text()


def test_every_promise_names_a_test() -> None:
    points = re.findall(r"^- (?:[^\n]|\n  )*", PAGE, re.MULTILINE)
    # What to set up around a process is the reader's.
    without = [point[:40] for point in points if "<!-- tests/" not in point and not point.startswith("- **")]
    assert len(NAMED) > 15
    assert without == []


def test_commands_open_no_connection(rows: Path, tmp_path: Path, run_python: Callable[..., object]) -> None:
    code = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        raise RuntimeError(f"{event}{arguments}")
sys.addaudithook(refuse)
from executorch_tensorrt.cli.app import app
program, folder = sys.argv[1:]
for line in (
    ["inspect", program],
    ["run", program, "--input", "ones:float32[2,4]"],
    ["profile", program, "--input", "ones:float32[2,4]", "-o", folder],
    ["report", folder],
    ["advise", folder],
    ["strip", folder, "-o", folder + "/stripped.json"],
    ["doctor"],
):
    try:
        app(line, prog_name="etrt")
    except SystemExit as end:
        assert not end.code, line
"""
    result = run_python(code, str(rows), str(tmp_path / "run"))
    assert result.returncode == 0, result.stderr  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By the name that the page's table has."""
    folder = tmp_path_factory.mktemp("files") / "of_a_user"
    folder.mkdir()
    model = private_model(folder)
    program = export(model, [Input((3, 4))], generate_etrecord=True)
    program.save(folder / "x.pte")
    program.save_etrecord(folder / "x.etrecord")
    capture(folder / "x.pte", (INPUT,), runs=2, output=folder / "run")
    traces = folder / "traces"
    for form in ("perfetto", "trex"):
        capture(folder / "x.pte", (INPUT,), runs=2, output=traces, format=form)  # type: ignore[arg-type]
    for name in ("session.json", "trace.etdp"):
        (traces / name).unlink()
    torch.export.save(torch.export.export(model, (torch.ones(3, 4),)), folder / "program.pt2")
    aoti.save(aoti.compile(model, [Input((3, 4))]), folder / "package.pt2")
    options = {"tensorrt_version": "10.3"}
    with pytest.raises(EnginesMissingError):
        export(model, [Input((3, 4))], engine="tensorrt", engine_options=options, engine_cache=folder / "cache")
    return {
        "`.pte`": folder / "x.pte",
        "ETRecord": folder / "x.etrecord",
        "session, and reports of it": folder / "run" / "session.json",
        "ETDump": folder / "run" / "trace.etdp",
        "Perfetto and TREX traces of engines": traces,
        "`.pt2` of `torch.export.save`": folder / "program.pt2",
        "`.pt2` of `aoti.save`": folder / "package.pt2",
        "build request and engine in an engine cache": folder / "cache",
    }


def test_file_tells_what_the_table_says(files: dict[str, Path]) -> None:
    _, _, table = PAGE.partition("| file | folders")
    rows = [line.strip("| ").split(" | ") for line in table.partition("\n\n")[0].splitlines()[2:]]
    said = {name: dict(zip(COLUMNS, cells, strict=True)) for name, *cells in rows}
    assert said == {name: tells(everything(path), path) for name, path in files.items()}


def test_nothing_asks_for_the_name_of_the_machine() -> None:
    sources = [path for folder in ("src", "native") for path in (REPOSITORY / folder).rglob("*.[cph]*")]
    asked = re.compile(r"gethostname|platform\.(node|uname)|\buname\b|getfqdn")
    assert len(sources) > 200
    assert [path.name for path in sources if path.suffix != ".pyc" and asked.search(path.read_text())] == []


COLUMNS = ("folders", "source lines", "file and line", "machine", "weights")


def tells(data: bytes, path: Path) -> dict[str, str]:
    folders = (str(path.parent).encode(), sys.prefix.encode())
    machine = (platform.platform().encode(), str(describe_machine()["processor"]).encode())
    found = (
        any(folder in data for folder in folders),
        any(line in data for line in LINES),
        re.search(rf'{re.escape(FILE)}(:|"|\\",? line)'.encode(), data) is not None,
        any(text in data for text in machine),
        WEIGHTS in data,
    )
    return {column: "yes" if value else "no" for column, value in zip(COLUMNS, found, strict=True)}
