"""Which operators can go into a TensorRT engine: each is converted and parsed alone, before anything is built.

Where TensorRT is on another machine it is converted alone; what the parser there refuses comes back with the engines.
"""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import cast

import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from executorch_tensorrt.engines.tensorrt.alone import alone, used_parts
from executorch_tensorrt.engines.tensorrt.library import Library
from executorch_tensorrt.engines.tensorrt.network import DTYPES, refusal_text, refusals, shortened
from executorch_tensorrt.engines.tensorrt.onnx_model import bind
from executorch_tensorrt.engines.tensorrt.target import Target
from executorch_tensorrt.engines.tensorrt.translate import TranslationError, to_aten, translate
from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.shape_env import unnarrowed

_log = logging.getLogger(__name__)

# TensorRT has these for inputs and for quantized layers.
_STORED = ("int8", "uint8")
_CASTS = (torch.ops.aten._to_copy.default, torch.ops.dim_order_ops._to_dim_order_copy.default)


class Operators:
    """Says of nodes why TensorRT can't run them, and remembers it for all that are alike."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[str, str | None] = {}
        self._dtypes = {dtype for dtype in DTYPES.values() if dtype != "bfloat16" or target.has_bfloat16}

    def reason(self, node: torch.fx.Node) -> str | None:
        """Why a node stays outside; None if TensorRT takes it."""
        key = _key(node)
        if key not in self._known:
            self._known[key] = self._wrong_type(node) or self._refusal(node)
        return self._known[key]

    def _wrong_type(self, node: torch.fx.Node) -> str | None:
        given = {dtype for argument in node.all_input_nodes for dtype in _dtypes(argument)}
        made = _dtypes(node)
        for dtype in sorted(given | made):
            if dtype not in self._dtypes:
                return f"{self._target.name} has no {dtype}"
            if dtype in _STORED and (dtype in made or aten_op(node.target) not in _CASTS):
                return f"{self._target.name} can cast {dtype} to another type, and do nothing else with it"
        return None

    def _refusal(self, node: torch.fx.Node) -> str | None:
        program = alone(node)
        try:
            with torch.no_grad(), unnarrowed():
                model = translate(to_aten(program), self._target.opset).model
        except TranslationError as error:
            return str(error)
        except Exception as error:
            _log.info("no ONNX for %s: %s", node.format_node(), error)
            return f"the ONNX exporter fails on it: {shortened(str(error)) or type(error).__name__}"
        dtypes = _bind(model, program)
        if not isinstance(self._target, Library):
            return None
        found = refusals(self._target, ir.to_proto(model).SerializeToString(), dtypes)
        return refusal_text(self._target, found[0]) if found else None


def _bind(model: ir.Model, program: ExportedProgram) -> dict[str, str]:
    """Name inputs and outputs after a program's; their types."""
    signature = program.graph_signature
    inputs, outputs = cast("tuple[Sequence[str], Sequence[str]]", (signature.user_inputs, signature.user_outputs))
    bind(model, inputs, outputs)
    nodes = {node.name: node for node in program.graph.nodes}
    return {name: next(iter(_dtypes(nodes[name]))) for name in (*inputs, *outputs)}


def _dtypes(node: torch.fx.Node) -> set[str]:
    values = pytree.tree_leaves(node.meta.get("val"))
    return {str(value.dtype).removeprefix("torch.") for value in values if isinstance(value, torch.Tensor)}


def _key(node: torch.fx.Node) -> str:
    """A text that two nodes share if TensorRT takes both or neither."""

    def describe(argument: torch.fx.Node) -> str:
        leaves = pytree.tree_leaves(argument.meta.get("val"))
        shapes = ((leaf.dtype, tuple(leaf.shape)) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
        return str([*map(str, shapes)])

    parts = used_parts(node) if isinstance(node.meta.get("val"), (list, tuple)) else None
    return str((node.target, torch.fx.map_arg((node.args, node.kwargs), describe), parts))
