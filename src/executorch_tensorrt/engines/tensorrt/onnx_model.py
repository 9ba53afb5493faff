"""From a partition to the ONNX model that TensorRT reads."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, NameFixPass

from executorch_tensorrt.engines.builder import BuildRequest
from executorch_tensorrt.engines.tensorrt.precision import lower_precision
from executorch_tensorrt.engines.tensorrt.translate import to_aten, translate
from executorch_tensorrt.graphs.ranged import with_ranges
from executorch_tensorrt.graphs.shapes import union_of

# Below it a tensor stays in the model, where the parser can look at it; shapes are such tensors.
_EXTERNAL_BYTES = 4096


@dataclass(frozen=True)
class OnnxModel:
    """A model whose inputs and outputs are an engine's bindings.

    Attributes:
        model: the model.
        origins: the partition's nodes that its nodes come from, by name, where known.
    """

    model: ir.Model
    origins: Mapping[str, str]

    @property
    def nodes(self) -> list[tuple[str, str]]:
        """Name and operator of its nodes, in order."""
        return [(node.name or "", node.op_type) for node in self.model.graph]

    def save(self, path: Path) -> None:
        """Write the model, and its weights into a file beside it: neither has a limit of 2 GB then."""
        ir.save(self.model, path, external_data=f"{path.name}.data", size_threshold_bytes=_EXTERNAL_BYTES)


def make_onnx_model(request: BuildRequest, opset: int, dtype: torch.dtype | None = None) -> OnnxModel:
    """Convert a partition, which is left as it was.

    Args:
        request: the partition.
        opset: the ONNX operator set: 17, or a later one.
        dtype: what to compute in instead of float32; inputs and outputs keep their types.

    Raises:
        Exception: an operator has no conversion, or its conversion does not take these arguments.
    """
    program = to_aten(with_ranges(request.program, union_of(request.profiles)).program)
    if dtype is not None:
        lower_precision(program, dtype)
    model, origins = translate(program, opset)
    names = [[item.name for item in request.bindings if item.is_input is side] for side in (True, False)]
    bind(model, *names)
    ClearMetadataAndDocStringPass()(model)
    return OnnxModel(model, origins)


def bind(model: ir.Model, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Give inputs and outputs their names. An output that no node makes for it alone gets one, which TensorRT needs."""
    graph = model.graph
    for value, name in zip(graph.inputs, inputs, strict=True):
        value.name = name
    bound: set[ir.Value] = set()
    for index, name in enumerate(outputs):
        value = graph.outputs[index]
        if value in bound or value.producer() is None:
            copied = ir.node("Identity", [value], name=f"output_{index}")
            copied.outputs[0].type, copied.outputs[0].shape = value.type, value.shape
            graph.append(copied)
            value = graph.outputs[index] = copied.outputs[0]
        value.name = name
        bound.add(value)
    NameFixPass()(model)
