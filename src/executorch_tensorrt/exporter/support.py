"""Which nodes of a program may go into an engine."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils import _pytree as pytree

from executorch_tensorrt.engines.builder import EngineBuilder
from executorch_tensorrt.graphs.nodes import aten_op, is_size
from executorch_tensorrt.graphs.shapes import has_unbacked, is_expressible, tensor_exprs
from executorch_tensorrt.inputs import DTYPES


def op_name(op: object) -> str:
    """The canonical name of an operator: "aten.linear.default", or "aten.linear" for all its overloads.

    Raises:
        TypeError: `op` is no operator and no name.
    """
    if isinstance(op, torch._ops.OpOverloadPacket):
        return op._qualified_op_name.replace("::", ".")
    found = aten_op(op)
    if found is not None:
        return str(found)
    if isinstance(op, str):
        return _known(op.removeprefix("torch.ops.").replace("::", "."))
    raise TypeError(
        f"torch_executed_ops has a wrong entry: got {op!r}, allowed torch.ops.aten.linear.default, "
        'torch.ops.aten.linear or "aten.linear"; name an operator.'
    )


def _known(name: str) -> str:
    try:
        found: Any = torch.ops
        for part in name.split("."):
            found = getattr(found, part)
    except (AttributeError, RuntimeError):
        found = None
    if not isinstance(found, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        raise ValueError(
            f"torch_executed_ops names no operator of torch: got {name!r}, allowed such as 'aten.linear' or "
            "'aten.linear.default'; correct it."
        )
    return name


class Support(OperatorSupportBase):
    """Decides, node by node, what goes into engines, and remembers why the rest does not."""

    def __init__(
        self, builder: EngineBuilder, torch_executed_ops: Iterable[str] = (), refused: Mapping[str, str] | None = None
    ) -> None:
        self._builder = builder
        self._excluded = frozenset(torch_executed_ops)
        self._refused = refused or {}
        self._reasons: dict[torch.fx.Node, str | None] = {}

    def is_node_supported(self, submodules: object, node: torch.fx.Node) -> bool:
        """See `OperatorSupportBase`."""
        return node.op == "call_function" and self.reason(node) is None

    def reason(self, node: torch.fx.Node) -> str | None:
        """Why a node stays outside; None if it goes into an engine."""
        if node not in self._reasons:
            self._reasons[node] = self._examine(node)
        return self._reasons[node]

    def exclude_layouts_at_borders(self, blocks: Iterable[Sequence[torch.fx.Node]]) -> bool:
        """Exclude the nodes of another memory layout from blocks that would exchange such tensors with the outside.

        Inside a block any layout is fine. Returns whether something was excluded: then propose again.
        """
        excluded = False
        for block in blocks:
            members = set(block)
            inputs = {arg for node in block for arg in node.all_input_nodes if arg not in members}
            outputs = {node for node in block if any(user not in members for user in node.users)}
            if all(map(_is_row_major, inputs | outputs)):
                continue
            for node in block:
                if not all(map(_is_row_major, [node, *node.all_input_nodes])):
                    self._exclude(node, "engines exchange row-major tensors only")
                    excluded = True
        return excluded

    def _exclude(self, node: torch.fx.Node, reason: str) -> None:
        """Exclude a node, with the parts of its value: an operator and its outputs are in one block, or in none."""
        self._reasons[node] = reason
        for user in node.users:
            if user.target is operator.getitem:
                self._exclude(user, reason)

    def _examine(self, node: torch.fx.Node) -> str | None:
        if has_unbacked_value(node):
            return "its shape depends on data"
        if is_size(node):
            return None
        if node.target is operator.getitem:
            return self.reason(cast(torch.fx.Node, node.args[0]))
        op = aten_op(node.target)
        if op is None:
            return "it is not an operator"
        if excludes(self._excluded, node):
            return "torch_executed_ops names it"
        if node.name in self._refused:
            return self._refused[node.name]
        if op._schema.is_mutable:
            return "it changes its argument"
        tensors = [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            return "it returns no tensor"
        given = [leaf for arg in node.all_input_nodes for leaf in pytree.tree_leaves(arg.meta.get("val"))]
        for tensor in [*tensors, *(leaf for leaf in given if isinstance(leaf, torch.Tensor))]:
            if str(tensor.dtype).removeprefix("torch.") not in DTYPES:
                return f"engines have no {tensor.dtype}"
        for tensor in tensors:
            if not all(is_expressible(expr) for expr in tensor_exprs(tensor)):
                return "its shape has no form in the engine's metadata"
        return self._builder.unsupported_reason(node)


def _is_row_major(node: torch.fx.Node) -> bool:
    values = (leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor))
    return all(value.dim_order() == tuple(range(value.dim())) for value in values)


def has_unbacked_value(node: torch.fx.Node) -> bool:
    """Whether a node's value or one of its arguments has a data-dependent shape."""
    values = [node.meta.get("val"), *(arg.meta.get("val") for arg in node.all_input_nodes)]
    return any(has_unbacked(leaf) for value in values for leaf in pytree.tree_leaves(value))


def excludes(names: Collection[str], node: torch.fx.Node) -> bool:
    """Whether a node is one of the named operators, or part of what one was decomposed into."""
    if not names:
        return False
    origins = [str(aten_op(node.target) or ""), *_origins(node.meta.get("from_node", ()))]
    return any(origin in names or origin.rpartition(".")[0] in names for origin in origins)


def _origins(sources: Iterable[Any]) -> Iterable[str]:
    for source in sources:
        yield str(source.target).removeprefix("torch.ops.")
        yield from _origins(source.from_node)


def propose(
    module: torch.fx.GraphModule, support: Support, min_block_size: int, needed: Collection[object] = ()
) -> list[list[torch.fx.Node]]:
    """Partition the supported nodes of a graph into blocks without cycles between them, in graph order.

    A block with a `needed` operator is kept however small it is.
    """
    blocks = _propose(module, support, min_block_size, needed)
    while support.exclude_layouts_at_borders(blocks):
        blocks = _propose(module, support, min_block_size, needed)
    return blocks


def _propose(
    module: torch.fx.GraphModule, support: Support, min_block_size: int, needed: Collection[object]
) -> list[list[torch.fx.Node]]:
    proposed = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True).propose_partitions()
    order = {node: index for index, node in enumerate(module.graph.nodes)}
    blocks = [sorted(partition.nodes, key=order.__getitem__) for partition in proposed]
    kept = [
        block
        for block in blocks
        if _weight(block) >= min_block_size or any(aten_op(node.target) in needed for node in block)
    ]
    return sorted((block for block in kept if _weight(block)), key=lambda block: order[block[0]])


def _weight(block: Iterable[torch.fx.Node]) -> int:
    return sum(1 for node in block if not is_size(node) and node.target is not operator.getitem)


def delegated_ops(
    program: ExportedProgram, support: Support, min_block_size: int, wanted: Iterable[torch._ops.OpOverload]
) -> list[torch._ops.OpOverload]:
    """The wanted operators of which every use will be inside an engine."""
    present = {node.target for node in program.graph.nodes if node.op == "call_function"}
    wanted = [op for op in wanted if op in present]
    if not wanted:
        return []
    if min_block_size > 1 or not all(map(_is_row_major, program.graph.nodes)):
        inside = {node for block in propose(program.graph_module, support, min_block_size) for node in block}
    else:
        inside = {node for node in program.graph.nodes if support.is_node_supported({}, node)}
    outside = {node.target for node in program.graph.nodes if node.op == "call_function" and node not in inside}
    return [op for op in wanted if op not in outside]
