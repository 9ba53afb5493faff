"""Copies of a program with other ranges for its shape symbols."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import sympy
import torch
from executorch.exir import EdgeCompileConfig
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StrictMinMaxConstraint
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges

from executorch_tensorrt.graphs.shapes import DimRange, dim_expr, symbols_of

# Derived from "val", or about the program that the nodes come from.
_STALE_META = ("tensor_meta", "example_value", "spec", "delegation_tag")


class RangedProgram(NamedTuple):
    """A program and how its shape symbols were called where it was copied from: new name to old."""

    program: ExportedProgram
    origins: Mapping[str, str]

    def renamed(self, ranges: Mapping[str, DimRange]) -> dict[str, DimRange]:
        """Ranges by old name as ranges by new name."""
        return {name: ranges[origin] for name, origin in self.origins.items()}


def with_ranges(program: ExportedProgram, ranges: Mapping[str, DimRange]) -> RangedProgram:
    """Copy a program's graph so that its shape symbols have the given ranges; weights and submodules are shared.

    Sizes keep their formulas over the symbols, so relations between inputs survive exactly and nothing is traced again.
    A symbol whose range is one point becomes that number.
    """
    shapes = _Shapes(program, ranges)
    graph = torch.fx.Graph()
    replacements: dict[torch.fx.Node, Any] = {}
    for node in program.graph.nodes:
        value = pytree.tree_map(shapes.convert, node.meta["val"]) if "val" in node.meta else None
        if node.op == "call_function" and isinstance(value, (int, float, bool)):
            replacements[node] = value
            continue
        fresh = graph.create_node(
            node.op,
            node.target,
            torch.fx.map_arg(node.args, replacements.__getitem__),
            torch.fx.map_arg(node.kwargs, replacements.__getitem__),
            node.name,
            node.type,
        )
        fresh.meta = {key: entry for key, entry in node.meta.items() if key not in _STALE_META}
        if "val" in node.meta:
            fresh.meta["val"] = value
        replacements[node] = fresh
    graph._codegen = copy.copy(program.graph._codegen)
    module = torch.fx.GraphModule(program.graph_module, graph)
    for node in graph.nodes:
        if node.target is executorch_call_delegate:
            _fix_outputs(module, node)
    ranged = ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=program.state_dict,
        range_constraints=shapes.constraints,
        module_call_graph=program.module_call_graph,
        constants=program.constants,
        verifiers=[cast(Any, EXIREdgeDialectVerifier(EdgeCompileConfig(_check_ir_validity=False), class_only=True))],
    )
    return RangedProgram(ranged, shapes.origins)


class _FixedOutputs:
    """Stands in for the program inside a delegate: what passes want from it is its nodes and its outputs' shapes."""

    def __init__(self, graph: torch.fx.Graph, outputs: object) -> None:
        self.graph = graph
        self._outputs = outputs

    def module(self) -> Callable[..., object]:
        return lambda *_: self._outputs


def _fix_outputs(module: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Spare ExecuTorch's passes the delegate's whole graph each time they run this node."""
    name = cast(str, cast(torch.fx.Node, node.args[0]).target)
    lowered = cast(LoweredBackendModule, getattr(module, name))
    fixed = LoweredBackendModule(
        cast(ExportedProgram, _FixedOutputs(lowered.original_module.graph, node.meta["val"])),
        lowered.backend_id,
        lowered.processed_bytes,
        lowered.compile_specs,
        lowered.named_data_store_output,
    )
    fixed.meta = lowered.meta
    setattr(module, name, fixed)


class _Shapes:
    """Rewrites fake tensors and sizes into a new shape environment."""

    def __init__(self, program: ExportedProgram, ranges: Mapping[str, DimRange]) -> None:
        self._env = ShapeEnv(specialize_zero_one=False, duck_shape=False)
        self._mode = FakeTensorMode(shape_env=self._env, allow_non_fake_inputs=True)
        self._fresh: dict[sympy.Symbol, sympy.Expr] = {}
        self.constraints: dict[sympy.Symbol, ValueRanges[Any]] = {}
        self.origins: dict[str, str] = {}
        taken = _static_sizes(program)
        for symbol in _symbols(program):
            low, opt, high = ranges[symbol.name]
            if low == high:
                self._fresh[symbol] = sympy.Integer(low)
                continue
            hint = generic_size(low, opt, high, taken)
            taken.add(hint)
            bounds = ValueRanges(low, high)
            fresh = self._env.create_symbol(
                hint,
                ConstantSource(f"size_{symbol.name}"),
                dynamic_dim=DimDynamic.DYNAMIC,
                constraint_dim=StrictMinMaxConstraint(vr=cast(Any, bounds), warn_only=False),
                do_not_specialize_zero_one=True,
            )
            self._fresh[symbol] = fresh
            self.constraints[cast(sympy.Symbol, fresh)] = cast(Any, bounds)
            self.origins[str(fresh)] = symbol.name

    def convert(self, value: object) -> object:
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, (torch.SymBool, torch.SymFloat)):
            return self._scalar(value)
        if not isinstance(value, torch.Tensor):
            return value
        sizes = [self._size(size) for size in value.shape]
        strides = [self._size(stride) for stride in value.stride()]
        with self._mode:
            return torch.empty_strided(
                cast(Any, sizes), cast(Any, strides), dtype=value.dtype, device=value.device, layout=value.layout
            )

    def _size(self, size: int | torch.SymInt) -> int | torch.SymInt:
        if isinstance(size, int):
            return size
        expr = cast(sympy.Expr, dim_expr(size).xreplace(self._fresh))
        if not expr.free_symbols:
            return int(sympy.simplify(expr))
        return cast(torch.SymInt, self._env.create_symintnode(expr, hint=None))

    def _scalar(self, value: torch.SymBool | torch.SymFloat) -> object:
        expr = value.node.expr.xreplace(self._fresh)
        if not expr.free_symbols:
            return bool(expr) if isinstance(value, torch.SymBool) else float(expr)
        if isinstance(value, torch.SymBool):
            return self._env.create_symboolnode(expr)
        return self._env.create_symfloatnode(expr, hint=None)


def generic_size(low: int, opt: int, high: int, taken: Iterable[int]) -> int:
    """A size to trace with: away from 0, 1, both ends of the range and sizes in use, as far as the range allows."""
    avoid = set(taken)
    nearby = sorted(range(max(low, opt - 64), min(high, opt + 64) + 1), key=lambda size: (abs(size - opt), -size))
    inside = [size for size in nearby if low < size < high and size > 1]
    for candidates in ([size for size in inside if size not in avoid], inside, [size for size in nearby if size > 1]):
        if candidates:
            return candidates[0]
    return high


def _symbols(program: ExportedProgram) -> list[sympy.Symbol]:
    found: dict[sympy.Symbol, None] = {}
    for node in program.graph.nodes:
        for leaf in pytree.tree_leaves(node.meta.get("val")):
            sizes = [*leaf.shape, *leaf.stride()] if isinstance(leaf, torch.Tensor) else [leaf]
            for size in sizes:
                if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                    found.update(dict.fromkeys(symbols_of(size.node.expr)))
    return list(found)


def _static_sizes(program: ExportedProgram) -> set[int]:
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    sizes = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    return {size for size in sizes if not isinstance(size, torch.SymInt)}
