"""The delegate of an engine that was built elsewhere: its bytes and its words as they are, and what is ours beside."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from executorch_tensorrt.engines.blob import BlobMetadata
from executorch_tensorrt.engines.builder import BuiltEngine, InputBounds
from executorch_tensorrt.engines.tensorrt.reported import reported_ranges
from executorch_tensorrt.exporter.partition import Partition, binding_of, range_fields
from executorch_tensorrt.exporter.torch_tensorrt.wrapped import WrappedEngine
from executorch_tensorrt.graphs.shapes import describe_shapes, range_of, tensor_exprs


class _Binding(NamedTuple):
    """An input or output of the engine.

    Attributes:
        name: what the engine calls it.
        argument: its place among the delegate's arguments; None for an output that the program does not take.
        value: its tensor.
    """

    name: str
    argument: int | None
    value: torch.Tensor


def magic_of(engine: WrappedEngine) -> bytes:
    """The format of the blob."""
    return b"TR02" if engine.record.aliased_io else b"TR01"


def metadata_of(partition: Partition, engine: WrappedEngine) -> BlobMetadata:
    """Torch-TensorRT's part of the blob's metadata, with its own words."""
    record = engine.record
    inputs = [binding_of(name, value, is_input=True) for name, _, value in _inputs(partition, engine)]
    outputs = [binding_of(name, value, is_input=False) for name, _, value in _outputs(partition, engine)]
    return BlobMetadata(
        [*inputs, *outputs],
        record.aliased_io,
        record.hardware_compatible,
        record.device_id,
        record.serialized_metadata,
        record.target_platform,
    )


def built_engine(partition: Partition, engine: WrappedEngine) -> BuiltEngine:
    """The engine as if it had been built for the partition."""
    return BuiltEngine(engine.data, bounds=_bounds(partition, engine))


def record_of(partition: Partition, engine: WrappedEngine) -> dict[str, Any]:
    """What only this project's runtime reads: of ranges, nothing that was not declared."""
    inputs, outputs = _inputs(partition, engine), _outputs(partition, engine)
    record: dict[str, Any] = {"engine_kind": "", "signature": partition.signature}
    if partition.declared:
        exprs = [tensor_exprs(binding.value) for binding in inputs]
        shapes = describe_shapes(exprs, [tensor_exprs(binding.value) for binding in outputs])
        record["profiles"] = [
            {"inputs": [range_fields([range_of(expr, profile) for expr in shape]) for shape in exprs]}
            for profile in partition.profiles
        ]
        record["symbols"] = shapes.symbols
        record["shapes"] = {"inputs": shapes.inputs, "outputs": shapes.outputs}
    arguments = {
        "inputs": [binding.argument for binding in inputs],
        "outputs": [binding.argument for binding in outputs],
    }
    if [*arguments["inputs"], *arguments["outputs"]] != list(range(len(inputs) + len(outputs))):
        record["arguments"] = arguments
    return record


def _inputs(partition: Partition, engine: WrappedEngine) -> list[_Binding]:
    """In the order of the delegate's arguments, which is not that of the engine; several may be one argument."""
    names = list(zip(engine.record.inputs, engine.inputs, strict=True))
    return [
        _Binding(name, argument, node.meta["val"])
        for argument, node in enumerate(partition.inputs)
        for name, source in names
        if source is node
    ]


def _outputs(partition: Partition, engine: WrappedEngine) -> list[_Binding]:
    """In the order of the delegate's arguments, then those that the program does not take."""
    names, first = engine.record.outputs, len(partition.inputs)
    taken = [engine.results[node] for node in partition.outputs]
    found = [_Binding(names[index], first + place, engine.values[index]) for place, index in enumerate(taken)]
    return found + [
        _Binding(name, None, engine.values[index]) for index, name in enumerate(names) if index not in taken
    ]


def _bounds(partition: Partition, engine: WrappedEngine) -> Sequence[InputBounds] | None:
    """What the engine itself says, as far as it can be asked here, in the order of the partition's inputs."""
    reported = reported_ranges(engine.data) if partition.declared else None
    if reported is None:
        return None
    firsts = {binding.argument: binding.name for binding in reversed(_inputs(partition, engine))}
    bounds = [[ranges[firsts[argument]] for argument in range(len(partition.inputs))] for ranges in reported]
    # An engine whose inputs never vary may have the method's number of profiles, all the same.
    return bounds[:1] if all(entry == bounds[0] for entry in bounds) and partition.is_static else bounds
