"""The programs that make_cases.py exports, with inputs and what PyTorch makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ON_HOST = ("block", "two", "ints", "mlp_host")
ON_DEVICE = ("mlp", "encoder", "lookup")
"""Programs whose inputs and outputs are planned in device memory, and which take host arrays as well."""
NAMES = (*ON_HOST, *ON_DEVICE)
STATEFUL = ("decoder", "methods")
"""Programs on the device, with a cache that their engines own: a method with two optimization profiles, and two."""

SEQUENCES = ("device", "host")
"""Where the program that random sequences call has its inputs and outputs; it has no calls of its own."""

CALLS = ("first", "second", "largest")
"""Shapes that both optimization profiles take, that only profile 1 takes, and profile 1's largest."""

TOLERANCE = 2e-4
"""Of the norm of the difference, against that of the outputs: engines may add in another order."""


@dataclass(frozen=True)
class Call:
    inputs: list[Array]
    outputs: list[Array]

    def assert_is(self, outputs: list[Array]) -> None:
        """See that these are the outputs, in type and shape and about in value."""
        assert [(array.dtype, array.shape) for array in outputs] == [(a.dtype, a.shape) for a in self.outputs]
        for got, expected in zip(outputs, self.outputs, strict=True):
            error = np.linalg.norm((got - expected).astype(np.float64))
            allowed = TOLERANCE * np.linalg.norm(expected.astype(np.float64)) if got.dtype.kind == "f" else 0
            assert error <= allowed, f"off by {error}, allowed {allowed}"


@dataclass(frozen=True)
class Case:
    """A program in a folder, and its calls by name."""

    path: Path
    calls: dict[str, Call]


def save_calls(folder: Path, name: str, calls: dict[str, Call]) -> None:
    arrays = {
        f"{call}.{side}.{index}": array
        for call, values in calls.items()
        for side, several in (("in", values.inputs), ("out", values.outputs))
        for index, array in enumerate(several)
    }
    np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def load_case(folder: Path, name: str) -> Case:
    """A case that make_cases.py wrote.

    Raises:
        FileNotFoundError: it did not.
    """
    path = folder / f"{name}.pte"
    if not path.is_file():
        raise FileNotFoundError(f"no {path}: see tests/gpu/README.md")
    with np.load(folder / f"{name}.npz") as arrays:

        def side(call: str, side: str) -> list[Array]:
            count = sum(key.startswith(f"{call}.{side}.") for key in arrays.files)
            return [arrays[f"{call}.{side}.{index}"] for index in range(count)]

        return Case(path, {call: Call(side(call, "in"), side(call, "out")) for call in CALLS})
