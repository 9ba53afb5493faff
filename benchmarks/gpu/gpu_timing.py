"""What the benchmarks on a GPU share. They time the host: a call on device arrays returns before its work is done.

The programs are those of tests/gpu/make_cases.py; see tests/gpu/README.md for how to run everything.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu.cuda import Stream, to_device
from gpu.prepared import Case, load_case
from timing import interleaved_us, options, report

from executorch_tensorrt import Module
from executorch_tensorrt.engines.tensorrt.gpu import current_gpu

ROUNDS = 400


class Bench:
    """One benchmark: its arguments, and a stream for its calls.

    Args:
        claim: what it shows.
        program: the name of the prepared program.
    """

    def __init__(self, claim: str, program: str) -> None:
        parser = options(claim)
        parser.add_argument("cases", type=Path, help="the folder of prepared programs")
        self._claim = claim
        self._arguments: argparse.Namespace = parser.parse_args()
        self.case: Case = load_case(self._arguments.cases, program)
        self.stream = Stream()

    def other(self, program: str) -> Case:
        return load_case(self._arguments.cases, program)

    def device_inputs(self, call: str) -> list[Any]:
        return [to_device(array) for array in self.case.calls[call].inputs]

    def caller(self, call: str, **options: Any) -> Callable[[], object]:
        """Calls of a module of its own, always with the same device arrays, so that it is in its steady state."""
        module = Module(self.case.path, **{"optimization_profile": "auto", **options})
        inputs = self.device_inputs(call)
        return lambda: module.forward(*inputs)

    def host_us(self, sides: Mapping[str, Callable[[], object]], calls: int = 1) -> dict[str, float]:
        """Median microseconds until a call of each side returns. Every side begins with an idle device."""
        return interleaved_us(sides, rounds=ROUNDS, calls=calls, after=self.stream.synchronize)

    def report(self, name: str, figures: Mapping[str, Any]) -> None:
        report(f"gpu/{name}", self._claim, figures, self._arguments, machine(), operands="CASES ")


def machine() -> dict[str, str]:
    import tensorrt

    driver = Path("/proc/driver/nvidia/version")
    text = driver.read_text().splitlines()[0] if driver.is_file() else "unknown"
    return {"gpu": current_gpu(), "driver": " ".join(text.split()), "tensorrt": tensorrt.__version__}
