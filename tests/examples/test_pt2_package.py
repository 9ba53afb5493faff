"""examples/6_pt2_package: the package gives PyTorch's numbers in a process of its own, and its engine is traced."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executorch_tensorrt import _native

if TYPE_CHECKING:
    from conftest import RunAlone, RunExample, RunPage


def test_package_runs_in_another_process_and_is_traced(
    run_example: RunExample, run_alone: RunAlone, run_page: RunPage, tmp_path: Path
) -> None:
    made = run_example("6_pt2_package/make_package.py")
    _native.release_packaged_engines()
    (difference,) = re.findall(r"largest difference from PyTorch before packaging: (\S+)", made)

    result = run_alone("6_pt2_package/run_package.py", "--calls", "3")
    assert result.returncode == 0, result.stderr[-3000:]
    differences = re.findall(r"^ +\d+ candidates: largest difference from PyTorch (\S+),", result.stdout, re.MULTILINE)
    assert len(differences) == 2
    assert all(float(value) < 1e-6 for value in (difference, *differences))
    (trace,) = (tmp_path / "traces").iterdir()
    assert f"trace: {trace.relative_to(tmp_path)}" in result.stdout
    assert "What each optimization profile cost" in run_page("6_pt2_package", tmp_path)
    assert "100 candidates on profile 0 are refused: " in result.stdout
    assert "profile 1 accepts these shapes: use OptimizationProfileGuard(1)" in result.stdout


def test_runner_says_what_makes_its_package(run_example: RunExample, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_example("6_pt2_package/run_package.py", "nothing.pt2")
    assert capsys.readouterr().err.endswith("got no file 'nothing.pt2'; run python make_package.py first.\n")
