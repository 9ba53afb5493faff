"""Runs the package in a process that exports nothing, checks it against PyTorch, times it, and traces its engine."""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from make_package import make_model

from executorch_tensorrt import OptimizationProfileGuard, aoti


def microseconds(runner: torch.nn.Module, features: torch.Tensor, calls: int) -> float:
    times: list[float] = []
    for _ in range(calls):
        started = perf_counter()
        runner(features)
        times.append(perf_counter() - started)
    return median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path, nargs="?", default=Path("ranker.pt2"), help="what make_package.py wrote")
    parser.add_argument("--calls", type=int, default=200, help="for each number of candidates")
    parser.add_argument("--traces", type=Path, default=Path("traces"), help="folder for the engine's trace")
    arguments = parser.parse_args()
    if not arguments.package.is_file():
        parser.error(f"there is no package: got no file '{arguments.package}'; run python make_package.py first.")

    runner = aoti.load(arguments.package)
    model = make_model()
    for candidates in (5, 100):
        features = torch.randn(candidates, 64)
        with torch.no_grad():
            error = (runner(features) - model(features)).abs().max()
        time = microseconds(runner, features, arguments.calls)
        print(f"{candidates:4} candidates: largest difference from PyTorch {error:.1e}, {time:.0f} µs a call")

    arguments.traces.mkdir(parents=True, exist_ok=True)
    aoti.set_profile_path_prefix(str(arguments.traces))
    aoti.set_profile_execution(True)
    for candidates in (5, 100):
        runner(torch.randn(candidates, 64))
    aoti.set_profile_execution(False)
    runner(torch.randn(5, 64))  # an engine writes its trace at the call after
    for trace in sorted(arguments.traces.iterdir()):
        print(f"trace: {trace}")

    try:
        with OptimizationProfileGuard(0):
            runner(torch.randn(100, 64))
    except RuntimeError as error:
        print("100 candidates on profile 0 are refused:", str(error).splitlines()[0])


if __name__ == "__main__":
    main()
