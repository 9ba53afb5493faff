"""Compiles a model into a PyTorch package with two optimization profiles in its engine."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from executorch_tensorrt import Input, aoti


class Ranker(torch.nn.Module):
    """Features of candidates, float32 [N, 64], to their shares of one: float32 [N]."""

    def __init__(self) -> None:
        super().__init__()
        self.score = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.score(features).squeeze(1), dim=0)


def make_model() -> Ranker:
    torch.manual_seed(0)
    return Ranker().eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("ranker.pt2"), help="the package")
    arguments = parser.parse_args()

    ranges = [
        {"min_shape": (2, 64), "opt_shape": (4, 64), "max_shape": (8, 64)},
        {"min_shape": (9, 64), "opt_shape": (100, 64), "max_shape": (500, 64)},
    ]
    model = make_model()
    # Without torch_executed_ops the engine takes all of this model. AOTInductor compiles what stays outside.
    compiled = aoti.compile(
        model, [Input(profiles=ranges)], optimization_profile="auto", torch_executed_ops=["aten._softmax"]
    )
    features = torch.randn(20, 64)
    with torch.no_grad():
        error = (compiled(features) - model(features)).abs().max()
    print(f"largest difference from PyTorch before packaging: {error:.1e}", flush=True)
    aoti.save(compiled, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
