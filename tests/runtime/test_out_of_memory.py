"""A machine with too little memory for an engine's activations."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import torch
from models import profiles

from executorch_tensorrt import Input, export


class _Wide(torch.nn.Module):
    """[rows, 1] -> [rows, 1] by way of [rows, 4096]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x.expand(-1, 4096), 1)[:, -1:].clone()


RUN = """
import resource
import sys

import numpy as np
from executorch_tensorrt import Module

module = Module(sys.argv[1])
module.load_method()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, hard))
x = np.array([[1], [2]], np.float32)
for _ in range(2):
    try:
        module.forward(x)
    except MemoryError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(module.forward(x)[0].tolist())
"""


def test_activations_without_memory_are_an_error_and_the_next_call_with_memory_is_right(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    path = tmp_path / "wide.pte"
    export(_Wide().eval(), [Input(profiles=profiles((1, 2, 8), (4, 64, 65536), tail=(1,)))]).save(path)
    result = run_python(RUN, str(path))
    assert result.returncode == 0, result.stderr
    *errors, right = result.stdout.splitlines()
    assert len(errors) == 2
    for error in errors:
        assert error.startswith("method 'forward', engine ")
        assert "no memory for activations of " in error
    assert right == "[[4096.0], [8192.0]]"
