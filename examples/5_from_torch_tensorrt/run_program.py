"""Runs a program that Torch-TensorRT wrote, on each of its optimization profiles, and compares it with PyTorch."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from executorch_tensorrt import ExecuTorchError, Module, OptimizationProfileGuard

PROGRAM = Path(__file__).resolve().parents[2] / "tests" / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def expected(x: np.ndarray) -> np.ndarray:
    """What PyTorch computes with the model that PROGRAM was made from."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    with torch.no_grad():
        return model(torch.from_numpy(x)).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, nargs="?", default=PROGRAM, help="one input: float32 [1, 1..256, 64]")
    arguments = parser.parse_args()

    try:
        module = Module(arguments.program)
        (x,) = module.method_meta().inputs
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(f"{arguments.program.name}: method 'forward', input {x.tensor.dtype} up to {tuple(x.tensor.sizes)}")
    try:
        module.load_method()
    except ExecuTorchError as error:
        raise SystemExit(f"not run here: {error}") from None

    for rows in (1, 64, 256):
        given = np.random.default_rng(0).standard_normal((1, rows, 64), np.float32)
        with OptimizationProfileGuard.auto():
            (got,) = module.forward(given)
        profile, error = module.last_selections[0].profile, np.abs(got - expected(given)).max()
        print(f"{rows:4} rows on profile {profile}: largest difference from PyTorch {error:.1e}")


if __name__ == "__main__":
    main()
