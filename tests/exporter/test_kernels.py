"""Operators that ExecuTorch has no kernel for: export() says so, and what loads the program."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from export_cases import model_of, rows

from executorch_tensorrt import ExecuTorchError, Module
from executorch_tensorrt.exporter import export


@pytest.mark.parametrize("outside", [(), ("aten.sort",)], ids=["in an engine", "outside"])
def test_export_warns_of_operators_without_a_kernel(outside: Sequence[str]) -> None:
    model = model_of(lambda self, x: torch.sort(x * 2).values + 1)
    with pytest.warns(UserWarning, match=r"no kernel for some operators: got aten::sort\.values, without which"):
        program = export(model, [rows((1, 2, 8))], torch_executed_ops=outside)
    with pytest.raises(ExecuTorchError, match="operator .*kernel in this process, which ExecuTorch's log names"):
        Module(program.buffer).forward(torch.ones(2, 4))
