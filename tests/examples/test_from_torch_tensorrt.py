"""examples/5_from_torch_tensorrt: what runs on this machine and what does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunAlone, RunExample, RunPage

REPOSITORY = Path(__file__).resolve().parents[2]


def test_program_is_described_and_not_run_without_a_gpu(run_alone: RunAlone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETRT_CUDART", "/no/libcudart.so")
    result = run_alone("5_from_torch_tensorrt/run_program.py")
    assert result.returncode == 1
    assert result.stdout.endswith("method 'forward', input float32 up to (1, 256, 64)\n")
    assert result.stderr.startswith("not run here: method 'forward' plans memory on 'cuda:0': ")
    assert "run it on a machine with that device and TensorRT" in result.stderr


def test_program_is_inspected(run_page: RunPage) -> None:
    told = run_page("5_from_torch_tensorrt", REPOSITORY / "examples" / "5_from_torch_tensorrt")
    assert "Profile ranges are known to the engine alone" in told


def test_program_that_is_missing_is_named(run_example: RunExample, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_example("5_from_torch_tensorrt/run_program.py", "nothing.pte")
    assert "nothing.pte" in capsys.readouterr().err.splitlines()[-1]


def test_one_range_and_two_profiles_give_pytorchs_numbers(run_example: RunExample) -> None:
    told = run_example("5_from_torch_tensorrt/export_model.py")
    rows = re.findall(r"^ +(\d+) rows on profile (\d): largest difference from PyTorch (\S+)$", told, re.MULTILINE)
    assert [(size, profile) for size, profile, _ in rows] == [
        *[("1", "0"), ("16", "0"), ("128", "0")],
        *[("1", "0"), ("16", "1"), ("128", "1")],
    ]
    assert all(float(difference) < 1e-5 for *_, difference in rows)
