"""A program that Torch-TensorRT wrote, on a machine without a GPU: the message says what is missing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"
MESSAGE = (
    "method 'forward' plans memory on 'cuda:0': CUDA can't be used here: no library of its runtime was found, tried "
    "/no/libcudart.so; install it, or name its file in the environment variable ETRT_CUDART; runtimes here are for "
    "engines of kind 'cpu'"
)
ADVICE = '; run it on a machine with that device and TensorRT, or export the model with engine="cpu"'

OURS = """
import sys
import numpy as np
from executorch_tensorrt import ExecuTorchError, Module
module = Module(sys.argv[1])
print(module.method_meta().inputs[0].tensor.sizes)
for call in (module.load_method, lambda: module.forward(np.ones((1, 1, 64), np.float32))):
    try:
        call()
    except ExecuTorchError as error:
        print(error)
print(module.is_method_loaded())
"""

STOCK = """
import executorch_tensorrt
from executorch.runtime import Runtime
import sys
program = Runtime.get().load_program(sys.argv[1])
print(sorted(program.method_names))
program.load_method("forward")
"""


@pytest.fixture(autouse=True)
def _no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETRT_CUDART", "/no/libcudart.so")


def test_method_is_described_and_not_loaded(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    sizes, *errors, loaded = run_python(OURS, str(PROGRAM)).stdout.splitlines()
    assert (sizes, loaded) == ("[1, 256, 64]", "False")
    assert [(error.startswith(MESSAGE), ADVICE in error) for error in errors] == [(True, True)] * 2


def test_stock_runtime_gives_an_error(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """ExecuTorch's own loader finds out before any delegate is asked; our allocator has told its log why."""
    result = run_python(STOCK, str(PROGRAM))
    assert result.stdout.splitlines() == ["['forward']"]
    assert result.returncode == 1
    assert "CUDA can't be used here: " in result.stderr
    assert "RuntimeError: Failed to allocate" in result.stderr
