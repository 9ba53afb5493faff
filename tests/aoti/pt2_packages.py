"""Two packages, made once per test session, and the eager models beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import models
import torch

from executorch_tensorrt import Input, aoti

FEW, MANY = (1, 2, 4), (3, 16, 32)  # rows of optimization profiles 0 and 1: both accept 3 and 4


class Mixed(torch.nn.Module):
    """float32 [rows, 8] -> [rows, 4] and [2 * rows, 8]: two engines, with a sine between them that is outside."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.last = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.sin(torch.relu(self.first(x)))
        return self.last(hidden), torch.cat([x, x + 1])


class Cache(torch.nn.Module):
    """float32 [1, steps, 4], int64 [steps] -> [1, 4]: an engine that writes a buffer in place."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: torch.Tensor
        self.register_buffer("keys", torch.zeros(1, 8, 4))

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(1, at, x)
        return torch.sin(self.keys.sum(1))


@dataclass(frozen=True)
class Package:
    path: Path
    compiled: aoti.CompiledModule
    model: torch.nn.Module


def compile_mixed(**options: Any) -> tuple[aoti.CompiledModule, Mixed]:
    torch.manual_seed(0)
    model = Mixed().eval()
    inputs = [Input(profiles=models.profiles(FEW, MANY, tail=(8,)))]
    return aoti.compile(model, inputs, torch_executed_ops=["aten.sin"], **options), model


def compile_cache() -> tuple[aoti.CompiledModule, Cache]:
    model = Cache().eval()
    steps = ((1, 1, 1), (2, 2, 4))
    inputs = [
        Input(profiles=models.profiles(*steps, head=(1,), tail=(4,)), shared_dims={1: "steps"}),
        Input(profiles=models.profiles(*steps), dtype="int64", shared_dims={0: "steps"}),
    ]
    compiled = aoti.compile(model, inputs, torch_executed_ops=["aten.sin"], optimization_profile="auto")
    return compiled, model
