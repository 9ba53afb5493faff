"""What a loaded TensorRT engine says of its inputs and outputs."""

# The bindings come without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from executorch_tensorrt.engines.tensorrt.library import Bindings
from executorch_tensorrt.engines.tensorrt.network import DTYPES, Range


def check_names(bindings: Bindings, engine: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """See that an engine has the inputs and outputs of its program.

    Raises:
        ValueError: it has others.
    """
    names = [engine.get_tensor_name(place) for place in range(engine.num_io_tensors)]
    modes = bindings.module.TensorIOMode
    for what, mode, wanted in (("inputs", modes.INPUT, inputs), ("outputs", modes.OUTPUT, outputs)):
        got = [name for name in names if engine.get_tensor_mode(name) == mode]
        if sorted(got) != sorted(wanted):
            raise ValueError(
                f"the engine's {what} are not the program's: got {quoted(got)}, allowed {quoted(wanted)}; "
                "export the program again."
            )


def check_kinds(bindings: Bindings, engine: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """See that an engine reads and writes tensors as the native core binds them.

    Raises:
        ValueError: it does not.
    """
    module = bindings.module
    for name in (*inputs, *outputs):
        formats = _formats(bindings, engine, name)
        if name in inputs and engine.is_shape_inference_io(name):
            got = "a shape tensor, whose values decide the shapes of others"
        elif engine.get_tensor_location(name) != module.TensorLocation.DEVICE:
            got = "a tensor in host memory"
        elif formats != {module.TensorFormat.LINEAR}:
            got = f"format {', '.join(sorted(entry.name for entry in formats))}"
        else:
            continue
        raise ValueError(
            f"the engine's '{name}' can't be bound: got {got}, allowed a linear tensor in device memory; keep the "
            "operators around it out of engines with torch_executed_ops."
        )


def _formats(bindings: Bindings, engine: Any, name: str) -> set[Any]:
    if not bindings.has_formats_by_profile:
        return {engine.get_tensor_format(name)}
    return {engine.get_tensor_format(name, profile) for profile in range(engine.num_optimization_profiles)}


def ranges_of(engine: Any, name: str, profile: int) -> list[Range]:
    """The range of each dim of an input."""
    shape = tuple(engine.get_tensor_shape(name))
    if -1 not in shape:
        return [(size, size, size) for size in shape]
    return [(low, opt, high) for low, opt, high in zip(*engine.get_tensor_profile_shape(name, profile), strict=True)]


def dtype_of(engine: Any, name: str) -> str:
    """The type of an input or output."""
    dtype = engine.get_tensor_dtype(name).name
    return DTYPES.get(dtype, str(dtype))


def quoted(names: Sequence[str]) -> str:
    """Names for a message."""
    return ", ".join(f"'{name}'" for name in names) or "none"
