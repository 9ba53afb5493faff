"""Builds TensorRT and TensorRT-RTX engines of a method's partitions."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from executorch_tensorrt.engines.builder import BuildRequest, BuiltEngine, OperatorsRefusedError, RefusedOperator
from executorch_tensorrt.engines.tensorrt.library import load_library
from executorch_tensorrt.engines.tensorrt.network import BuildError, Plan, build_plan
from executorch_tensorrt.engines.tensorrt.onnx_model import OnnxModel, make_onnx_model
from executorch_tensorrt.engines.tensorrt.operators import Operators
from executorch_tensorrt.engines.tensorrt.options import BuildOptions, read_options
from executorch_tensorrt.engines.tensorrt.translate import TranslationError
from executorch_tensorrt.exporter.edge_to_aten import aten_op
from executorch_tensorrt.exporter.shapes import DimRange
from executorch_tensorrt.exporter.sources import handles_of

_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}

_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
# What ONNX has a word for, and would be many operators otherwise.
_PRESERVED = (
    _ATTENTION,
    torch.ops.aten.linear.default,
    torch.ops.aten.matmul.default,
    torch.ops.aten.upsample_nearest1d.vec,
    torch.ops.aten.upsample_nearest2d.vec,
    torch.ops.aten.upsample_nearest3d.vec,
    torch.ops.aten.upsample_bilinear2d.vec,
    torch.ops.aten.upsample_bicubic2d.vec,
    torch.ops.aten.upsample_trilinear3d.vec,
)


class TensorRTEngineBuilder:
    """Builds engines of kind `tensorrt` or `tensorrt_rtx`."""

    magic = b"TR01"
    updates_in_place = False

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._library = load_library(kind)
        self._operators = Operators(self._library)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See `EngineBuilder.check_options`."""
        read_options(self._library, options)

    def unsupported_reason(self, node: torch.fx.Node) -> str | None:
        """See `EngineBuilder.unsupported_reason`."""
        return self._operators.reason(node)

    def ops_to_preserve(self, program: ExportedProgram) -> Sequence[torch._ops.OpOverload]:
        """Attention with a mask is none: PyTorch gives zeros where a row of it allows nothing, ONNX gives NaN."""
        masked = any(node.target is _ATTENTION and _mask_of(node) is not None for node in program.graph.nodes)
        return _PRESERVED[1:] if masked else _PRESERVED

    def build(self, request: BuildRequest) -> BuiltEngine:
        """See `EngineBuilder.build`."""
        options = read_options(self._library, request.options)
        dtype = _DTYPES.get(options.precision) if self._library.strongly_typed else None
        try:
            model = make_onnx_model(request, self._library.opset, dtype)
            plan = self._plan(request, model, options)
        except (TranslationError, BuildError) as error:
            operators = _blamed(request, error.reasons)
            if not operators:
                raise
            raise OperatorsRefusedError(str(error), operators) from error
        names = [binding.name for binding in request.bindings if binding.is_input]
        bounds = None
        if plan.bounds is not None:
            bounds = [[[DimRange(*dim) for dim in dims[name]] for name in names] for dims in plan.bounds]
        return BuiltEngine(
            plan.data,
            [_links(request, model)] * len(request.bounds),
            bounds,
            builder=self._library.label + options.target,
            hardware_compatible=options.hardware_compatible or self.kind == "tensorrt_rtx",
        )

    def _plan(self, request: BuildRequest, model: OnnxModel, options: BuildOptions) -> Plan:
        names = [binding.name for binding in request.bindings if binding.is_input]
        ranges = [dict(zip(names, bounds, strict=True)) for bounds in request.bounds]
        dtypes = {binding.name: binding.dtype for binding in request.bindings}
        with tempfile.TemporaryDirectory(prefix="etrt-") as folder:
            path = Path(folder) / "model.onnx"
            model.save(path)
            try:
                return build_plan(self._library, path, ranges, dtypes, options)
            except BuildError as error:
                origins = {**model.origins, **_output_nodes(request)}
                reasons = {origins[name]: reason for name, reason in error.reasons.items() if name in origins}
                raise BuildError(str(error), reasons) from error


def _mask_of(node: torch.fx.Node) -> object:
    return node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")


def _links(request: BuildRequest, model: OnnxModel) -> dict[int | str, list[int]]:
    """The debug handles behind each node of the ONNX model: TensorRT's layers are called after these nodes."""
    handles = {node.name: handles_of([node]) for node in request.program.graph.nodes}
    return {name: handles[origin] for name, origin in model.origins.items() if handles.get(origin)}


def _output_nodes(request: BuildRequest) -> dict[str, str]:
    names = [binding.name for binding in request.bindings if not binding.is_input]
    return dict(zip(names, cast("Sequence[str]", request.program.graph_signature.user_outputs), strict=True))


def _blamed(request: BuildRequest, reasons: Mapping[str, str]) -> list[RefusedOperator]:
    """The operators of a partition that an error blames by the names of their nodes."""
    found: dict[torch.fx.Node, str] = {}
    for node in request.program.graph.nodes:
        if node.op == "call_function" and node.name in reasons:
            whole = node.args[0] if node.target is operator.getitem else node
            found[cast(torch.fx.Node, whole)] = reasons[node.name]
    return [RefusedOperator(node.name, str(aten_op(node.target)), reason) for node, reason in found.items()]
