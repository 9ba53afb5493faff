"""Sizes are computed inside the partition that uses them, so that no integer crosses a partition's border."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
import torch
from executorch.exir.backend.partitioner import DelegationSpec

from executorch_tensorrt.exporter.buffers import TAG
from executorch_tensorrt.graphs.nodes import is_size
from executorch_tensorrt.graphs.shapes import as_affine, dim_expr, solve_symbols, symbols_of, tensor_exprs

_SIZE = torch.ops.aten.sym_size.int


class DeferredTags(dict[str, DelegationSpec]):
    """Partition tags that change the graph when they are first walked.

    `to_backend` insists that `partition()` leaves the graph as it was, then walks the tags to duplicate constants that
    several partitions share. Sizes that several partitions share need the same treatment at the same moment.
    """

    def __init__(self, tags: dict[str, DelegationSpec], module: torch.fx.GraphModule) -> None:
        super().__init__(tags)
        self._module: torch.fx.GraphModule | None = module

    def items(self) -> Any:
        """See `dict.items`."""
        module, self._module = self._module, None
        if module is not None:
            copy_sizes(module)
        return super().items()


def copy_sizes(module: torch.fx.GraphModule) -> None:
    """Give each tagged partition its own copies of the sizes that it uses, and drop originals that nobody uses."""
    graph = module.graph
    for node in graph.nodes:
        if is_size(node):
            node.meta.pop(TAG, None)
    for tag in dict.fromkeys(node.meta[TAG] for node in graph.nodes if TAG in node.meta):
        _Copier(graph, tag).run()
    for node in reversed(list(graph.nodes)):
        if is_size(node) and not node.users and TAG not in node.meta:
            graph.erase_node(node)
    graph.lint()
    module.recompile()


class _Copier:
    """Copies sizes into one partition."""

    def __init__(self, graph: torch.fx.Graph, tag: str) -> None:
        self._graph = graph
        self._tag = tag
        self._order = {node: index for index, node in enumerate(graph.nodes)}
        self._members = [node for node in graph.nodes if node.meta.get(TAG) == tag and node.op == "call_function"]
        self._copies: dict[torch.fx.Node, torch.fx.Node] = {}

    def run(self) -> None:
        for member in self._members:
            for size in [arg for arg in member.all_input_nodes if is_size(arg)]:
                member.replace_input_with(size, self._copy(size, member))
        self._anchor()

    def _copy(self, size: torch.fx.Node, before: torch.fx.Node) -> torch.fx.Node:
        # Members are visited in graph order, so a copy made for an earlier one is already above this one.
        if size not in self._copies:
            source = self._find(size, before)
            with self._graph.inserting_before(before):
                if source is not None:
                    fresh = self._graph.call_function(_SIZE, source)
                else:
                    inner = {arg: self._copy(arg, before) for arg in size.all_input_nodes if is_size(arg)}
                    fresh = self._graph.node_copy(size, lambda arg: inner.get(arg, arg))
            fresh.meta = {**size.meta, TAG: self._tag}
            self._copies[size] = fresh
        return self._copies[size]

    def _find(self, size: torch.fx.Node, before: torch.fx.Node) -> tuple[torch.fx.Node, int] | None:
        """A tensor that the partition holds anyway, above `before`, and that has the size as a dim."""
        value = size.meta["val"]
        if not isinstance(value, torch.SymInt):
            return None
        expr = dim_expr(value)
        for tensor in self._tensors():
            if self._order[tensor] < self._order[before]:
                for axis, dim in enumerate(tensor_exprs(tensor.meta["val"])):
                    if dim == expr:
                        return tensor, axis
        return None

    def _tensors(self) -> list[torch.fx.Node]:
        """Inputs of the partition, then its own nodes, each in graph order."""
        members = set(self._members)
        inputs = {arg for node in self._members for arg in node.all_input_nodes if arg not in members}
        every = [*sorted((node for node in inputs if node in self._order), key=self._order.__getitem__), *self._members]
        return [node for node in every if isinstance(node.meta.get("val"), torch.Tensor)]

    def _anchor(self) -> None:
        """See that every symbol in an output's shape follows from the inputs, adding an input where it does not."""
        members = {*self._members, *self._copies.values()}
        inputs = {arg for node in members for arg in node.all_input_nodes if arg not in members}
        shapes = [tensor_exprs(node.meta["val"]) for node in inputs if isinstance(node.meta.get("val"), torch.Tensor)]
        known = set(solve_symbols(shapes)[0])
        whole = {expr for shape in shapes for expr in shape}
        for node in self._members:
            if all(user in members for user in node.users):
                continue
            for symbol in _missing(node, known, whole):
                source = self._plain(symbol, node)
                if source is not None:
                    with self._graph.inserting_before(node):
                        fresh = self._graph.call_function(_SIZE, source)
                    fresh.meta = {**node.meta, "val": source[0].meta["val"].shape[source[1]], TAG: self._tag}
                    known.add(symbol)

    def _plain(self, symbol: sympy.Symbol, before: torch.fx.Node) -> tuple[torch.fx.Node, int] | None:
        for node in self._graph.nodes:
            if node is before:
                return None
            if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
                for axis, expr in enumerate(tensor_exprs(node.meta["val"])):
                    affine = as_affine(expr)
                    if affine is not None and affine.symbol == symbol:
                        return node, axis
        return None


def _missing(node: torch.fx.Node, known: set[sympy.Symbol], whole: set[sympy.Expr]) -> Iterator[sympy.Symbol]:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        for expr in tensor_exprs(value):
            if expr not in whole:
                yield from (symbol for symbol in symbols_of(expr) if symbol not in known)
