"""Exports a model whose input is declared for Torch-TensorRT, and again with two optimization profiles."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import executorch_tensorrt
from executorch_tensorrt import ExecuTorchError, Module, export

try:
    from torch_tensorrt import Input
except ImportError:  # the same declaration, where Torch-TensorRT is not installed
    from executorch_tensorrt import Input

SIZES = (1, 16, 128)


def theirs() -> list[Input]:
    """One range, as code that was written for Torch-TensorRT has it."""
    return [Input(min_shape=(1, 1, 64), opt_shape=(1, 64, 64), max_shape=(1, 128, 64), dtype=torch.float32)]


def two_profiles() -> list[executorch_tensorrt.Input]:
    """The same range, with a profile of its own for single rows. Torch-TensorRT's Input has `profiles` from 2.14 on."""
    return [
        executorch_tensorrt.Input(
            profiles=[
                {"min_shape": (1, 1, 64), "opt_shape": (1, 1, 64), "max_shape": (1, 1, 64)},
                {"min_shape": (1, 1, 64), "opt_shape": (1, 64, 64), "max_shape": (1, 128, 64)},
            ],
            dtype=torch.float32,
        )
    ]


def run(program: Path, model: torch.nn.Module) -> None:
    """Each size on the profile that its shape selects, and how far the result is from PyTorch's."""
    module = Module(program, optimization_profile="auto")
    for size in SIZES:
        x = torch.from_numpy(np.random.default_rng(0).standard_normal((1, size, 64), np.float32))
        (got,) = module.forward(x)
        with torch.no_grad():
            error = (got - model(x)).abs().max()
        profile = module.last_selections[0].profile
        print(f"  {size:3} rows on profile {profile}: largest difference from PyTorch {error:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("cpu", "tensorrt_rtx", "tensorrt"), default="cpu", help="the engine kind")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder for the programs")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).eval()
    for name, inputs in (("one_range", theirs()), ("two_profiles", two_profiles())):
        program = arguments.output / f"{name}.pte"
        export(model, inputs, engine=arguments.engine).save(program)
        print(f"{program}, input declared by {type(inputs[0]).__module__.partition('.')[0]}", flush=True)
        try:
            run(program, model)
        except ExecuTorchError as error:
            print(f"  not run here: {error}")


if __name__ == "__main__":
    main()
