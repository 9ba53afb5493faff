"""Builds TensorRT and TensorRT-RTX engines of a method's partitions."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from executorch_tensorrt.engines.builder import (
    BuildRequest,
    BuiltEngine,
    EnginesMissingError,
    OperatorsRefusedError,
    RefusedOperator,
)
from executorch_tensorrt.engines.tensorrt.cache import entry_for
from executorch_tensorrt.engines.tensorrt.entry_folder import require_own_cache
from executorch_tensorrt.engines.tensorrt.gpu import current_gpu
from executorch_tensorrt.engines.tensorrt.job import MODEL, BuildJob
from executorch_tensorrt.engines.tensorrt.library import Library, find_target
from executorch_tensorrt.engines.tensorrt.network import BuildError, Plan, build_plan
from executorch_tensorrt.engines.tensorrt.onnx_model import OnnxModel, make_onnx_model
from executorch_tensorrt.engines.tensorrt.operators import Operators
from executorch_tensorrt.engines.tensorrt.options import read_options, read_version, written_options
from executorch_tensorrt.engines.tensorrt.translate import TranslationError
from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.shapes import DimRange
from executorch_tensorrt.graphs.sources import handles_of

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
    """Builds engines of kind `tensorrt` or `tensorrt_rtx`, or asks for them in an engine cache.

    Args:
        kind: the engine kind.
        options: the exporter's `engine_options`.
        cache: the folder of an engine cache, if there is one.

    Raises:
        ValueError: the options are wrong, or others may write the cache.
        RuntimeError: the engines can't be built here, and there is no cache to ask for them in.
    """

    magic = b"TR01"
    updates_in_place = False

    def __init__(self, kind: str, options: Mapping[str, Any] | None = None, cache: Path | None = None) -> None:
        self.kind = kind
        self._cache = cache
        if cache is not None:
            require_own_cache(cache)
        self._target = find_target(kind, read_version(options or {}), elsewhere=cache is not None)
        self._options = read_options(self._target, options or {})
        self._operators = Operators(self._target)

    def unsupported_reason(self, node: torch.fx.Node) -> str | None:
        """See `EngineBuilder.unsupported_reason`."""
        return self._operators.reason(node)

    def ops_to_preserve(self, program: ExportedProgram) -> Sequence[torch._ops.OpOverload]:
        """Attention with a mask is none: PyTorch gives zeros where a row of it allows nothing, ONNX gives NaN."""
        masked = any(node.target is _ATTENTION and _mask_of(node) is not None for node in program.graph.nodes)
        return _PRESERVED[1:] if masked else _PRESERVED

    def build(self, request: BuildRequest) -> BuiltEngine:
        """See `EngineBuilder.build`."""
        dtype = _DTYPES.get(self._options.precision) if self._target.strongly_typed else None
        try:
            model = make_onnx_model(request, self._target.opset, dtype)
            plan = self._plan(request, model)
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
            builder=plan.builder + self._options.target,
            hardware_compatible=self._options.hardware_compatible or self.kind == "tensorrt_rtx",
            target_platform=plan.platform,
        )

    def _plan(self, request: BuildRequest, model: OnnxModel) -> Plan:
        with tempfile.TemporaryDirectory(prefix="etrt-") as folder:
            model.save(Path(folder) / MODEL)
            try:
                return self._obtained(self._job(request, model), model, Path(folder))
            except BuildError as error:
                origins = {**model.origins, **_output_nodes(request)}
                reasons = {origins[name]: reason for name, reason in error.reasons.items() if name in origins}
                raise BuildError(str(error), reasons) from error

    def _obtained(self, job: BuildJob, model: OnnxModel, folder: Path) -> Plan:
        """The engine of a job whose files are in a folder: from the cache, or built, or asked for."""
        target, entry = self._target, entry_for(self._cache, job, folder) if self._cache is not None else None
        if isinstance(target, Library):

            def build() -> Plan:
                return build_plan(target, folder / MODEL, job.profiles, job.dtypes, self._options, model.nodes)

            return entry.plan_or_build(build) if entry is not None else build()
        assert entry is not None
        plan, refused = entry.plan(), entry.refused()
        if plan is not None:
            return plan
        if refused is not None:
            raise BuildError(refused.message, refused.reasons)
        entry.put_request(job, folder)
        raise EnginesMissingError(entry.folder.parent, target.label, 1)

    def _job(self, request: BuildRequest, model: OnnxModel) -> BuildJob:
        names = [binding.name for binding in request.bindings if binding.is_input]
        operators = {node.name: str(aten_op(node.target)) for node in request.program.graph.nodes}
        job = BuildJob(
            self.kind,
            self._target.version,
            gpu="",
            options=written_options(self.kind, self._options),
            profiles=[dict(zip(names, bounds, strict=True)) for bounds in request.bounds],
            dtypes={binding.name: binding.dtype for binding in request.bindings},
            nodes=[(name, kind, operators.get(model.origins.get(name, ""), "")) for name, kind in model.nodes],
        )
        here = isinstance(self._target, Library) and job.is_for_one_gpu
        return replace(job, gpu=current_gpu()) if here else job


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
