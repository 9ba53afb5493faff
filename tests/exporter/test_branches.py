"""export(): models with branches and loops."""

from __future__ import annotations

import torch
from export_cases import rows

from executorch_tensorrt import Module
from executorch_tensorrt.exporter import export


class Branches(torch.nn.Module):
    """Branches one after the other, and within another one; what each computes is used after the next."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        positive, large = x.sum() > 0, x.max() > 1

        def inner(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            first = torch.cond(large, lambda x: x * 2, lambda x: x - 1, [x])
            second = torch.cond(positive, lambda x: x + 10, lambda x: x * 3, [first])
            return first + second, second - first

        first, second = torch.cond(positive, inner, lambda x: (x - 5, x + 7), [x])
        third = torch.cond(large, lambda x: x.exp(), lambda x: x.sin(), [first])
        return first, second, third, first.flatten()


def test_export_matches_eager_branches_one_after_the_other() -> None:
    model = Branches().eval()
    module = Module(export(model, [rows((1, 2, 8))]).buffer)
    for scale in (1.0, -1.0, 0.01):
        x = scale * torch.linspace(0.5, 2, 16).reshape(4, 4)
        for got, expected in zip(module.forward(x), model(x), strict=True):
            torch.testing.assert_close(got, expected)
