"""What `etrt run` tells about inputs, outputs and times, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from executorch_tensorrt.files import replacing

if TYPE_CHECKING:
    from executorch_tensorrt._native import ValueMeta

Array = np.ndarray[Any, np.dtype[Any]]


def describe_input(value: Any) -> dict[str, Any]:
    """Type and shape of an array or a number."""
    array = _array(value)
    assert array is not None
    return {"dtype": _dtype(value, array), "shape": list(array.shape)}


def describe_output(value: Any, meta: ValueMeta) -> dict[str, Any]:
    """Type, shape, and smallest, largest and mean element, where there are any."""
    array = _array(value)
    if array is None:
        return {"dtype": meta.tensor.dtype if meta.tensor else meta.kind.lower(), "shape": None}
    found: dict[str, Any] = {"dtype": _dtype(value, array), "shape": list(array.shape)}
    if array.size:
        exact = array.astype(np.float64)
        found |= {"min": float(exact.min()), "max": float(exact.max()), "mean": float(exact.mean())}
    return found


def describe_times(times: Sequence[float]) -> dict[str, float]:
    """Percentiles of times, in their unit."""
    median, p90, p99 = (float(np.percentile(times, q)) for q in (50, 90, 99))
    return {"iterations": len(times), "min": min(times), "median": median, "p90": p90, "p99": p99, "max": max(times)}


def save_outputs(outputs: Sequence[Any], folder: Path) -> list[str]:
    """Writes each output as `output_N.npy`.

    Raises:
        ValueError: NumPy has no type for an output.
        OSError: the folder or a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[str] = []
    for index, value in enumerate(outputs):
        array = _array(value)
        if array is None:
            raise ValueError(f"output {index} cannot be saved: NumPy lacks its type; run without --save-outputs.")
        path = folder / f"output_{index}.npy"
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, array)
        paths.append(str(path))
    return paths


def _array(value: Any) -> Array | None:
    """None for what NumPy has no type for: bfloat16 tensors, and no value."""
    return np.asarray(value) if isinstance(value, (np.ndarray, bool, int, float)) else None


def _dtype(value: Any, array: Array) -> str:
    return str(array.dtype) if isinstance(value, np.ndarray) else type(value).__name__
