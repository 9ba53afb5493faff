"""A call on host arrays, against copy in, TensorRT's own call, copy out and wait, written as lean as Python allows.

The bare sides write into the same array again; a call through a program makes a new one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from gpu.cuda import cudart, pinned
from gpu_timing import BareCall, Bench

from executorch_tensorrt import Module

TO_DEVICE, TO_HOST = 1, 2
Array = np.ndarray[Any, Any]


class Copies:
    """CUDA's functions, bound once."""

    def __init__(self) -> None:
        address, size = ctypes.c_void_p, ctypes.c_size_t
        copy = ctypes.CFUNCTYPE(ctypes.c_int, address, address, size, ctypes.c_int, address)
        wait = ctypes.CFUNCTYPE(ctypes.c_int, address)
        self.copy: Callable[[int, int, int, int, int], int] = copy(("cudaMemcpyAsync", cudart()))
        self.wait: Callable[[int], int] = wait(("cudaStreamSynchronize", cudart()))


class Bare:
    """One call's sides without a program. Each returns where its outputs are."""

    def __init__(self, bench: Bench, call: str, profile: int, copies: Copies) -> None:
        self._call = BareCall(bench, call, profile)
        (self._source,) = bench.case.calls[call].inputs
        (self._expected,) = bench.case.calls[call].outputs
        self._pinned_source = pinned(self._source.shape, self._source.dtype)
        self._pinned_result = pinned(self._expected.shape, self._expected.dtype)
        np.copyto(self._pinned_source, self._source)
        self._stream = bench.stream.handle
        self._copies = copies

    def _straight(self, source: Array, result: Array) -> Callable[[], Array]:
        copy, wait, execute, stream = self._copies.copy, self._copies.wait, self._call.execute, self._stream
        put = (self._call.input.address, source.ctypes.data, source.nbytes, TO_DEVICE, stream)
        get = (result.ctypes.data, self._call.output.address, result.nbytes, TO_HOST, stream)

        def run() -> Array:
            if copy(*put) or not execute(stream) or copy(*get) or wait(stream):
                raise RuntimeError("CUDA or TensorRT failed")
            return result

        return run

    def pageable(self) -> Callable[[], Array]:
        """Straight from and to the arrays."""
        return self._straight(self._source, np.empty_like(self._expected))

    def callers_pinned(self) -> Callable[[], Array]:
        """The arrays are pinned themselves."""
        return self._straight(self._pinned_source, self._pinned_result)

    def staged(self) -> Callable[[], Array]:
        """Through pinned memory."""
        run, move, result = self.callers_pinned(), ctypes.memmove, np.empty_like(self._expected)
        put = (self._pinned_source.ctypes.data, self._source.ctypes.data, self._source.nbytes)
        get = (result.ctypes.data, self._pinned_result.ctypes.data, result.nbytes)

        def run_staged() -> Array:
            move(*put)
            run()
            move(*get)
            return result

        return run_staged


def main() -> None:
    bench = Bench("A call on host arrays takes at most 1.1 times the better way to do it by hand.", "mlp_host")
    copies = Copies()
    figures: dict[str, float] = {"aim_ratio": 1.1}
    for profile, call in enumerate(("first", "second")):
        values = bench.case.calls[call]
        (source,) = values.inputs
        pinned_source = pinned(source.shape, source.dtype)
        np.copyto(pinned_source, source)
        module = Module(bench.case.path, optimization_profile="auto")
        bare = Bare(bench, call, profile, copies)
        sides: dict[str, Callable[[], Array]] = {
            "program": lambda module=module, source=source: module.forward(source)[0],
            "pageable": bare.pageable(),
            "staged": bare.staged(),
            "program_pinned": lambda module=module, source=pinned_source: module.forward(source)[0],
            "callers_pinned": bare.callers_pinned(),
        }
        for side in sides.values():
            values.assert_is([side()])
        medians = bench.host_us(sides)
        size = f"{source.nbytes >> 10}_kb"
        figures |= {f"{size}_{name}_us": round(value, 2) for name, value in medians.items()}
        figures[f"{size}_ratio"] = round(medians["program"] / min(medians["pageable"], medians["staged"]), 3)
    bench.report("host_arrays", figures)


if __name__ == "__main__":
    main()
