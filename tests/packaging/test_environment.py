"""The wheel in a new environment that has its dependencies alone: programs run, and what lacks an extra says which."""

from __future__ import annotations

import json
from email.message import Message
from pathlib import Path

import numpy as np
import pytest
import torch
from models import rows
from packaging.requirements import Requirement
from wheels import make_environment, run_in

RUN = """
import sys
import numpy as np
from executorch_tensorrt import Module, OptimizationProfileGuard

with OptimizationProfileGuard(1):
    np.save(sys.argv[2], Module(sys.argv[1]).forward(np.ones((40, 4), np.float32))[0])
print(sorted(sys.modules.keys() & {"click", "flatbuffers", "jinja2", "rich", "torch"}))
"""
REPORT = "needs the extra 'report': got no module '{}'; install executorch-tensorrt[report]."


@pytest.fixture(scope="module")
def there(wheel: Path, metadata: Message, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of python and etrt."""
    lines = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    needed = [line.name for line in lines if line.marker is None]
    return make_environment(tmp_path_factory.mktemp("environment"), wheel, needed)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "rows.pte"
    path.write_bytes(rows().buffer)
    return path


def test_program_runs_with_numpy_and_executorch_alone(wheel: Path, program: Path, tmp_path: Path) -> None:
    there = make_environment(tmp_path / "lean", wheel, ["executorch", "numpy"])
    result = run_in(there / "python", "-c", RUN, str(program), str(tmp_path / "out.npy"))
    assert result.stdout == "[]\n", result.stderr
    expected = rows().eager(torch.ones(40, 4))[0].numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=1e-5)


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_command_answers_in_json_without_extras(command: str, there: Path, program: Path) -> None:
    given = ["--input", "random:float32[4,4]"] if command == "run" else []
    result = run_in(there / "etrt", command, str(program), *given, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["program"] == str(program)


@pytest.mark.parametrize("command", ["run", "inspect", "doctor", "report"])
def test_command_that_prints_a_table_says_which_extra_it_needs(command: str, there: Path) -> None:
    result = run_in(there / "etrt", command, "x")
    assert result.stderr == f"etrt: 'etrt {command}' without --json {REPORT.format('rich')}\n"
    assert result.returncode == 2


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"], ["--cmake-prefix-path"]])
def test_command_line_explains_itself_without_extras(arguments: list[str], there: Path) -> None:
    result = run_in(there / "etrt", *arguments)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("profiling.renderers import html", f"an HTML page {REPORT.format('markupsafe')}"),
        ("profiling.renderers import text_report; text_report.TextReport(80, False)",
         f"a report as text {REPORT.format('rich')}"),
    ],
)  # fmt: skip
def test_renderer_says_which_extra_it_needs(code: str, message: str, there: Path) -> None:
    result = run_in(there / "python", "-c", f"from executorch_tensorrt.{code}")
    assert result.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"


def test_export_says_which_extra_it_needs(there: Path) -> None:
    result = run_in(there / "python", "-c", "from executorch_tensorrt import export")
    assert result.stderr.splitlines()[-1].endswith("exporting needs torch; install executorch-tensorrt[export]")
