"""The operator that stands for an engine which was built elsewhere, while the program that runs it is lowered.

It lies in this project's namespace, never in Torch-TensorRT's: a name of theirs that is taken when their library is
loaded ends the process. It has no kernel, for it never runs: it ends as a delegate.
"""

# torch's operators carry few types.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import torch

from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.shapes import OPERATIONS, describe_shapes, tensor_exprs

_NAME = "executorch_tensorrt::engine"

_library = torch.library.Library("executorch_tensorrt", "FRAGMENT")
_library.define("engine(Tensor[] inputs, Tensor engine, str record) -> Tensor[]")


def engine_op() -> torch._ops.OpOverload:
    """`engine(inputs, engine, record)`: the engine's bytes as a uint8 tensor, and a JSON text with `outputs`."""
    return torch.ops.executorch_tensorrt.engine.default


def is_engine(node: torch.fx.Node) -> bool:
    """Whether a node of an ATen or edge program stands for an engine."""
    op = aten_op(node.target) if node.op == "call_function" else None
    return op is not None and op._schema.name == _NAME


def describe_results(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """What the operator's record says of its outputs: their shapes follow from those of the inputs.

    Raises:
        ValueError: a shape does not.
    """
    shapes = describe_shapes([tensor_exprs(value) for value in inputs], [tensor_exprs(value) for value in outputs])
    return {
        "symbols": shapes.symbols,
        "outputs": [
            {"shape": shape, "dtype": str(value.dtype).removeprefix("torch."), "device": str(value.device)}
            for shape, value in zip(shapes.outputs, outputs, strict=True)
        ],
    }


def _results(inputs: Sequence[torch.Tensor], engine: torch.Tensor, record: str) -> list[torch.Tensor]:
    described = json.loads(record)
    symbols = [_symbol(inputs, source) for source in described["symbols"]]
    return [
        torch.empty(
            [_size(dim, symbols) for dim in output["shape"]],
            dtype=getattr(torch, output["dtype"]),
            device=output["device"],
        )
        for output in described["outputs"]
    ]


torch.library.register_fake(_NAME, _results, lib=_library)


def _symbol(inputs: Sequence[torch.Tensor], source: Mapping[str, int]) -> Any:
    size = inputs[source["input"]].shape[source["dim"]] - source["offset"]
    return size if source["scale"] == 1 else size // source["scale"]


def _size(expr: Any, symbols: Sequence[Any]) -> Any:
    """Evaluate one of the formulas that `shapes.expr_to_json` writes."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return symbols[int(expr[1:])]
    return reduce(OPERATIONS[expr[0]], (_size(operand, symbols) for operand in expr[1:]))
