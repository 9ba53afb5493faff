"""A program that Torch-TensorRT wrote, on a machine without a GPU: the message says what is missing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from executorch_tensorrt import ExecuTorchError, Module

PROGRAM = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"
MESSAGE = (
    r"method 'forward' plans memory on 'cuda:0', which this process does not have: got no device allocator, and "
    r"runtimes for engines of kind 'cpu'; run it on a machine with that device and TensorRT, or export the model with "
    r'engine="cpu"'
)

STOCK = """
import executorch_tensorrt
from executorch.runtime import Runtime
import sys
program = Runtime.get().load_program(sys.argv[1])
print(sorted(program.method_names))
program.load_method("forward")
"""


def test_method_is_described_and_not_loaded() -> None:
    module = Module(PROGRAM)
    assert module.method_meta().inputs[0].tensor.sizes == [1, 256, 64]  # type: ignore[union-attr]
    with pytest.raises(ExecuTorchError, match=MESSAGE):
        module.load_method()
    with pytest.raises(ExecuTorchError, match=MESSAGE):
        module.forward(np.ones((1, 1, 64), np.float32))
    assert not module.is_method_loaded()


def test_stock_runtime_gives_an_error(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """ExecuTorch's own loader finds out before any delegate is asked, so the words are its own."""
    result = run_python(STOCK, str(PROGRAM))
    assert result.stdout.splitlines() == ["['forward']"]
    assert result.returncode == 1
    assert "No device allocator registered" in result.stderr
    assert "RuntimeError: Failed to allocate" in result.stderr
