"""examples/5_from_torch_tensorrt/run_program.py where there is a device: the fake one, and a fake of the engine."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.python_engine import Array, FakeCuda, FakeRuntime

from executorch_tensorrt import _native

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "5_from_torch_tensorrt" / "run_program.py"


def test_program_runs_on_both_profiles(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))

    def compute(x: Array) -> list[Array]:
        with torch.no_grad():
            return [model(torch.from_numpy(np.array(x))).numpy()]

    profiles = [[[(1, 1, 1), (1, 1, 1), (64, 64, 64)]], [[(1, 1, 1), (1, 64, 256), (64, 64, 64)]]]
    runtime = FakeRuntime(cuda, profiles, ["float32", "float32"], compute)
    _native.register_engine_runtime("tensorrt_rtx", runtime)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    rows = re.findall(r"^ +(\d+) rows on profile (\d): .* (\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert [(size, profile) for size, profile, _ in rows] == [("1", "0"), ("64", "1"), ("256", "1")]
    assert all(float(difference) < 1e-5 for *_, difference in rows)
