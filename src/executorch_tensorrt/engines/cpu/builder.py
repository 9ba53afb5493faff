"""Builds CPU engines: a nested ExecuTorch program with one method per optimization profile.

Lowering to XNNPACK is most of the work and does not depend on how far a dim ranges, only on which dims are fixed. So
profiles that fix the same dims share one lowering, and differ in the memory planned around it.
"""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.config.gemm_configs import ConvolutionConfig
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchBackendConfig
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.schema import ExecutionPlan, Tensor
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from executorch_tensorrt.engines.builder import BuildRequest, BuiltEngine, InputBounds
from executorch_tensorrt.engines.kernels import warn_of_missing_kernels
from executorch_tensorrt.graphs.edge_to_aten import edge_to_aten
from executorch_tensorrt.graphs.in_place import select_plainly, write_in_place
from executorch_tensorrt.graphs.leftovers import drop_data, forget, share_data
from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.ranged import with_ranges
from executorch_tensorrt.graphs.shapes import DimRange, union_of
from executorch_tensorrt.graphs.sources import handles_of

_log = logging.getLogger(__name__)


class CpuEngineBuilder:
    """Builds engines of kind `cpu`.

    Raises:
        ValueError: there are options; it has none.
    """

    kind = "cpu"
    magic = b"ETC1"
    updates_in_place = True

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        if options:
            raise ValueError(
                f"engine_options has an unknown entry: got {', '.join(map(repr, options))}, allowed none for engine "
                "'cpu'; remove it."
            )

    def unsupported_reason(self, node: torch.fx.Node) -> str | None:
        """The nested runtime has the kernels of ExecuTorch's own operator libraries."""
        op = aten_op(node.target)
        if op is not None and op.namespace not in _NAMESPACES:
            return f"operators of '{op.namespace}' have no kernel in the CPU engine"
        return None

    def ops_to_preserve(self, program: ExportedProgram) -> Sequence[torch._ops.OpOverload]:
        """The operators that XNNPACK takes whole, if it takes every use of them."""
        ops, accepts = XnnpackPartitioner().ops_to_not_decompose(program)
        refused = {
            node.target
            for node in program.graph.nodes
            if node.op == "call_function" and node.target in ops and accepts is not None and not accepts(node)
        }
        return [op for op in ops if op not in refused]

    def build(self, request: BuildRequest) -> BuiltEngine:
        """See `EngineBuilder.build`."""
        groups: dict[frozenset[tuple[str, int]], list[int]] = {}
        for index, profile in enumerate(request.profiles):
            points = frozenset((name, span.min) for name, span in profile.items() if span.min == span.max)
            groups.setdefault(points, []).append(index)
        methods: dict[int, ExportedProgram] = {}
        weights: dict[bytes, bytes] = {}
        for indices in groups.values():
            ranged = with_ranges(request.program, union_of([request.profiles[index] for index in indices]))
            select_plainly(ranged.program, request.aliases)
            lowered = _lower(ranged.program)
            write_in_place(lowered, request.aliases)
            share_data(lowered, weights)
            for index in indices:
                own = ranged.renamed(request.profiles[index])
                methods[index] = with_ranges(lowered, own).program if len(indices) > 1 else lowered
        engine = _emit([methods[index] for index in sorted(methods)], request.bounds)
        drop_data(methods.values())
        forget(methods.values())
        return engine


# What libexecutorch_kernels_optimized.so registers.
_NAMESPACES = ("aten", "dim_order_ops", "quantized_decomposed")
_CONFIG = EdgeCompileConfig(_check_ir_validity=False)


def _lower(program: ExportedProgram) -> ExportedProgram:
    """Hand what XNNPACK takes to XNNPACK."""
    manager = EdgeProgramManager({"forward": program}, compile_config=_CONFIG)
    lowered = manager.to_backend(_xnnpack()).exported_program()
    left = _undecomposed(lowered)
    if left:
        _log.info("decomposing again, XNNPACK left %s", ", ".join(sorted(left)))
        from executorch.exir import to_edge_transform_and_lower

        lowered = to_edge_transform_and_lower(
            edge_to_aten(program), partitioner=[_xnnpack()], compile_config=_CONFIG
        ).exported_program()
    return lowered


class _Convolutions(ConvolutionConfig):
    """XNNPACK's, without 1-d convolutions over several dynamic dims: it accepts them, then can't write them down."""

    def check_constraints(self, node: torch.fx.Node, ep: ExportedProgram) -> bool:
        shape = node.meta["val"].shape
        if len(shape) == 3 and sum(isinstance(size, torch.SymInt) for size in shape) > 1:
            return False
        return super().check_constraints(node, ep)


def _xnnpack() -> XnnpackPartitioner:
    return XnnpackPartitioner(
        [_Convolutions if config is ConvolutionConfig else config for config in ALL_PARTITIONER_CONFIGS]
    )


def _undecomposed(program: ExportedProgram) -> set[str]:
    preserved = set(XnnpackPartitioner().ops_to_not_decompose(program)[0])
    ops = (aten_op(node.target) for node in program.graph.nodes if node.op == "call_function")
    return {str(op) for op in ops if op in preserved}


def _emit(profiles: Sequence[ExportedProgram], bounds: Sequence[InputBounds]) -> BuiltEngine:
    methods = {f"profile_{index}": program for index, program in enumerate(profiles)}
    # ExecuTorch's repair of dim orders runs every node again; most programs have nothing to repair.
    compile_config = EdgeCompileConfig(
        _check_ir_validity=False, _skip_dim_order=all(map(_has_default_dim_orders, methods.values()))
    )
    manager = EdgeProgramManager(cast(Any, methods), compile_config=compile_config)
    planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    # Before emitting, which puts instruction numbers in the place of debug handles.
    delegates = {name: _delegate_handles(method) for name, method in methods.items()}
    program = manager.to_executorch(config)
    # The emitter's map has one handle or several for an instruction.
    links = cast("dict[str, dict[int, int | list[int]]]", program.debug_handle_map)
    plans = {plan.name: plan for plan in program.executorch_program.execution_plan}
    warn_of_missing_kernels(plans.values())
    return BuiltEngine(
        bytes(program.buffer),
        [
            {step: _link(handle, delegates[name]) for step, handle in links.get(name, {}).items() if handle}
            for name in methods
        ],
        [_planned(plans[name], ranges) for name, ranges in zip(methods, bounds, strict=True)],
    )


def _planned(plan: ExecutionPlan, ranges: InputBounds) -> InputBounds:
    """The ranges with the maximum that memory is planned for; a nested program knows no other end."""
    sizes = [cast(Tensor, plan.values[index].val).sizes for index in plan.inputs]
    return [
        [DimRange(span.min, span.opt, size) for span, size in zip(dims, shape, strict=True)]
        for dims, shape in zip(ranges, sizes, strict=True)
    ]


def _delegate_handles(method: ExportedProgram) -> dict[int, list[int]]:
    """The operators inside each delegate of a nested method, by the debug handle of its call."""
    found: dict[int, list[int]] = {}
    for node in method.graph.nodes:
        if node.target is executorch_call_delegate:
            lowered: Any = getattr(method.graph_module, cast(str, cast(torch.fx.Node, node.args[0]).target))
            found[node.meta["debug_handle"]] = handles_of(lowered.original_module.graph.nodes)
    return found


def _link(handle: int | list[int], delegates: Mapping[int, list[int]]) -> list[int]:
    handles = handle if isinstance(handle, list) else [handle]
    return [inner for outer in handles for inner in delegates.get(outer, [outer])]


def _has_default_dim_orders(program: ExportedProgram) -> bool:
    values = (leaf for node in program.graph.nodes for leaf in pytree.tree_leaves(node.meta.get("val")))
    return all(value.is_contiguous() for value in values if isinstance(value, torch.Tensor))
