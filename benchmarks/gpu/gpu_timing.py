"""What the benchmarks on a GPU share. They time the host: a call on device arrays returns before its work is done.

The programs are those of tests/gpu/make_cases.py; see tests/gpu/README.md for how to run everything.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu.cuda import DeviceArray, Stream, to_device
from gpu.prepared import Case, load_case
from timing import interleaved_us, options, report

from executorch_tensorrt import Module
from executorch_tensorrt.engines.tensorrt.gpu import current_gpu
from executorch_tensorrt.engines.tensorrt.runtime import load_engine
from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import read_engine

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


class BareCall:
    """A program's engine without the program, in a context that is made as the delegate makes its own.

    Attributes:
        input: on the device, as the call has it.
        output: on the device.
        execute: TensorRT's `execute_async_v3`.
    """

    def __init__(self, bench: Bench, call: str, profile: int) -> None:
        (delegate,) = read_program(bench.case.path).methods[0].delegates
        blob = read_engine(delegate)
        names = [[each.name for each in side] for side in (blob.header.metadata.inputs, blob.header.metadata.outputs)]
        engine = load_engine("tensorrt", memoryview(blob.engine), "", *names)
        memory = DeviceArray((max(map(engine.activation_size, range(len(engine.profiles)))),), "u1")
        context = engine.create_context(profile, False, bench.stream.handle, memory.address, memory.nbytes)
        bench.stream.synchronize()
        (self.input,) = bench.device_inputs(call)
        self.output = DeviceArray(bench.case.calls[call].outputs[0].shape, "f4")
        context.set_input_shape(0, self.input.shape)
        context.infer_output_shapes()
        context.set_input_address(0, self.input.address)
        context.set_output_address(0, self.output.address)
        self.execute: Callable[[int], bool] = context._context.execute_async_v3  # pyright: ignore[reportPrivateUsage]
        self._alive = (context, engine, memory, blob)


def machine() -> dict[str, str]:
    import tensorrt

    driver = Path("/proc/driver/nvidia/version")
    text = driver.read_text().splitlines()[0] if driver.is_file() else "unknown"
    return {"gpu": current_gpu(), "driver": " ".join(text.split()), "tensorrt": tensorrt.__version__}
