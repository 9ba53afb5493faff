"""From a program to an ONNX model.

This is `torch.onnx.export(dynamo=True)` taken apart. That builds its registry of conversions anew for every call and
traces every program again, which takes longer than all the rest, and it can't be asked about one operator.
"""

# torch's graphs carry few types, and the exporter's parts are private.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import onnx_ir as ir
import torch
from onnx_ir.passes.common import (
    CommonSubexpressionEliminationPass,
    LiftConstantsToInitializersPass,
    RemoveUnusedOpsetsPass,
)
from onnxscript import opset18, optimizer, version_converter
from torch.export import ExportedProgram
from torch.onnx._internal.exporter import _core, _fx_passes, _registration
from torch.onnx._internal.exporter._errors import ConversionError, DispatchError

from executorch_tensorrt.engines.tensorrt.opset17 import NoFormError, to_opset_17
from executorch_tensorrt.graphs.edge_to_aten import edge_to_aten

# They warn of every operator of packages that are not installed, and of every node that no module is known for.
for _module in (_registration, _core):
    logging.getLogger(_module.__name__).setLevel(logging.ERROR)

# What the exporter's conversions are written in.
_LOWEST_OPSET = 18
_ORIGIN = "etrt_origin"
_FX_NODE = re.compile(r"%(\w+) ")


class TranslationError(RuntimeError):
    """The ONNX exporter does not take an operator; `reasons` has why, by its node's name in the partition."""

    def __init__(self, message: str, node: str) -> None:
        super().__init__(message)
        self.reasons = {node: message}


class Translation(NamedTuple):
    """An ONNX model, and for the names of its nodes those of the nodes that they come from, where known."""

    model: ir.Model
    origins: dict[str, str]


def to_aten(program: ExportedProgram) -> ExportedProgram:
    """Copy an edge program into the operators that the ONNX exporter knows; weights are shared.

    Functional `*_copy` operators become the views that they copy: nothing changes its arguments in the edge dialect.
    """
    aten = edge_to_aten(program)
    for node in aten.graph.nodes:
        node.meta["custom"] = {**(node.meta.get("custom") or {}), _ORIGIN: node.name}
        if isinstance(node.target, torch._ops.OpOverload):
            node.target = _view_of(node.target) or node.target
    aten.graph_module.recompile()
    return aten


@cache
def _view_of(op: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    name = op._schema.name.removeprefix("aten::")
    packet = getattr(torch.ops.aten, name.removesuffix("_copy"), None) if name.endswith("_copy") else None
    view = getattr(packet, op._overloadname, None)
    if view is None or not view.is_view:
        return None
    return cast(torch._ops.OpOverload, view)


def translate(program: ExportedProgram, opset: int) -> Translation:
    """Convert a program that `to_aten` made, and change it on the way.

    Args:
        program: the program.
        opset: the ONNX operator set: 17, or a later one.

    Raises:
        TranslationError: an operator has no conversion, or its conversion does not take these arguments.
        Exception: a decomposition fails.
    """
    registry = _registry(max(opset, _LOWEST_OPSET))
    targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
    if all(map(registry.is_registered, targets)):
        _fx_passes.insert_type_promotion_nodes(program.graph_module)
    else:
        program = _core._prepare_exported_program_for_export(program, registry=registry)
    customs = {node.name: node.meta.get("custom") or {} for node in program.graph.nodes}
    names = {name: custom[_ORIGIN] for name, custom in customs.items() if _ORIGIN in custom}
    try:
        model = _core._exported_program_to_onnx_program(program, registry=registry).model
    except ConversionError as error:
        raise _translation_error(error, names) from error
    version_converter.convert_version(model, registry.opset_version, fallback=True)
    # The exporter's own optimizer goes on to match patterns, for five times as long; TensorRT does that itself.
    optimizer.inline(model)
    optimizer.fold_constants(model)
    optimizer.remove_unused_nodes(model)
    CommonSubexpressionEliminationPass()(model)
    # TensorRT 8.6 reads what is not allocated where it gets a constant as a list of numbers.
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    RemoveUnusedOpsetsPass()(model)
    origins = _origins(model, names)
    if opset < _LOWEST_OPSET:
        try:
            to_opset_17(model)
        except NoFormError as error:
            raise TranslationError(f"the ONNX exporter fails on it: {error}", origins.get(error.node, "")) from error
    return Translation(model, origins)


@cache
def _registry(opset: int) -> _registration.ONNXRegistry:
    registry = _registration.ONNXRegistry.from_torchlib(opset)
    registry.register_op(torch.ops.aten.squeeze.dims, _squeeze_dims)
    return registry


def _squeeze_dims(self: Any, dim: Sequence[int]) -> Any:
    """The one common operator that would have the whole program traced again."""
    axes = [axis for axis in dim if self.shape[axis] == 1]
    onnx: Any = opset18
    return onnx.Squeeze(self, onnx.Constant(value_ints=axes)) if axes else onnx.Identity(self)


def _translation_error(error: ConversionError, names: Mapping[str, str]) -> TranslationError:
    cause = error.__cause__ or error
    match = _FX_NODE.search(str(error))
    node = names.get(match[1], "") if match else ""
    if isinstance(cause, DispatchError):
        return TranslationError("the ONNX exporter has no conversion for it", node)
    while isinstance(cause, ConversionError) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = " ".join(str(cause).split()) or type(cause).__name__
    return TranslationError(f"the ONNX exporter fails on it: {text[:160]}", node)


def _origins(model: ir.Model, names: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in model.graph:
        match = _FX_NODE.match(node.metadata_props.get("pkg.torch.onnx.fx_node", ""))
        if node.name and match and match[1] in names:
            found[node.name] = names[match[1]]
    return found
