"""Writes into a buffer's memory instead of into a copy of it, where a graph allows that."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from executorch.exir.dialects._ops import ops
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument

from executorch_tensorrt.graphs.nodes import aten_op

_EDGE: Any = ops.edge.aten
_PUT = _EDGE.index_put.default
_PUT_IN_PLACE = _EDGE.index_put_.default
_VIEWS = {"aten::view_copy", "aten::unsqueeze_copy", "aten::squeeze_copy", "aten::alias_copy", "aten::detach_copy"}


def select_plainly(program: ExportedProgram, aliases: Mapping[int, int]) -> None:
    """Give the index_put nodes between inputs and their updates the form that can be written in place, where they can.

    `cache[:, :, positions] = value` puts a value of lower rank, for example, or one to be broadcast.
    """
    for update, source in _ends(program, aliases).values():
        node = update
        while node is not source and node.target is _PUT:
            if not _is_plain(node):
                _make_plain(program.graph, node)
            node = cast(torch.fx.Node, node.args[0])
    program.graph_module.recompile()


def write_in_place(program: ExportedProgram, aliases: Mapping[int, int]) -> None:
    """Make a program's outputs updates of its inputs, in place.

    Args:
        program: a lowered program of which all inputs and outputs are the user's; it is changed.
        aliases: position of an output to that of its input. An output that can't be written directly is computed
            elsewhere and copied, so the result is the same.
    """
    output = program.graph.output_node()
    values = list(cast("Sequence[torch.fx.Node]", output.args[0]))
    specs = program.graph_signature.output_specs
    for place, (update, source) in _ends(program, aliases).items():
        # ExecuTorch would copy as well, but then puts these outputs before the others.
        values[place] = _rewrite(program.graph, update, source) or _copy_back(program.graph, update, source)
        argument = TensorArgument(values[place].name)
        specs[place] = OutputSpec(OutputKind.USER_INPUT_MUTATION, argument, source.name)
    output.args = (tuple(values),)
    program.graph_module.recompile()


def _ends(program: ExportedProgram, aliases: Mapping[int, int]) -> dict[int, tuple[torch.fx.Node, torch.fx.Node]]:
    """The nodes of outputs and of their inputs, by position of the output."""
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = cast("Sequence[str]", program.graph_signature.user_inputs)
    values = cast("Sequence[torch.fx.Node]", program.graph.output_node().args[0])
    return {output: (values[output], nodes[inputs[source]]) for output, source in aliases.items()}


def _make_plain(graph: torch.fx.Graph, put: torch.fx.Node) -> None:
    value, indices, values = cast("tuple[torch.fx.Node, Sequence[Any], torch.fx.Node]", put.args[:3])
    used = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(used) != 1 or used[0][1].meta["val"].dim() != 1:
        return
    (dim, index), shape = used[0], list(value.meta["val"].shape)
    shape[dim] = index.meta["val"].shape[0]
    with graph.inserting_before(put):
        while values.meta["val"].dim() < len(shape):
            values = _call(graph, _EDGE.unsqueeze_copy.default, values, 0)
        if not all(map(_same, values.meta["val"].shape, shape)) and all(isinstance(size, int) for size in shape):
            values = _call(graph, _EDGE.expand_copy.default, values, shape)
    put.args = (value, indices, values, *put.args[3:])


def _call(graph: torch.fx.Graph, op: Any, value: torch.fx.Node, argument: Any) -> torch.fx.Node:
    fresh = graph.call_function(op, (value, argument))
    fresh.meta = {**value.meta, "val": op(value.meta["val"], argument)}
    return fresh


def _copy_back(graph: torch.fx.Graph, update: torch.fx.Node, source: torch.fx.Node) -> torch.fx.Node:
    with graph.inserting_before(graph.output_node()):
        fresh = graph.call_function(torch.ops.aten.copy_.default, (source, update))
    fresh.meta = {**source.meta}
    return fresh


def _rewrite(graph: torch.fx.Graph, update: torch.fx.Node, source: torch.fx.Node) -> torch.fx.Node | None:
    """Turn the chain of index_put from an input to its update into writes.

    Returns:
        The node of the new value; None if it has to be computed elsewhere.
    """
    chain: list[torch.fx.Node] = []
    node = update
    while node is not source:
        if node.target is not _PUT or not _is_plain(node):
            return None
        chain.append(node)
        node = cast(torch.fx.Node, node.args[0])
    order = {node: index for index, node in enumerate(graph.nodes)}
    for put in reversed(chain):
        if any(order[user] > order[put] for user in _readers(cast(torch.fx.Node, put.args[0]), put)):
            return None
    for put in reversed(chain):
        with graph.inserting_before(put):
            fresh = graph.call_function(_PUT_IN_PLACE, put.args, put.kwargs)
        fresh.meta = put.meta
        put.replace_all_uses_with(fresh)
        graph.erase_node(put)
        update = fresh
    return update


def _readers(value: torch.fx.Node, put: torch.fx.Node) -> list[torch.fx.Node]:
    """What looks at a value, also through what may become a view of its memory."""
    found: list[torch.fx.Node] = []
    for user in value.users:
        if user is put:
            continue
        found.append(user)
        op = aten_op(user.target)
        if op is not None and op._schema.name in _VIEWS:
            found += _readers(user, put)
    return found


def _is_plain(put: torch.fx.Node) -> bool:
    """Whether ExecuTorch's kernel that writes in place takes it: one 1-d index, values of the shape that it selects."""
    value, indices, values = cast("tuple[torch.fx.Node, Sequence[Any], torch.fx.Node]", put.args[:3])
    accumulate = put.args[3] if len(put.args) > 3 else put.kwargs.get("accumulate", False)
    used = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if accumulate or len(used) != 1:
        return False
    (dim, index), shape = used[0], list(value.meta["val"].shape)
    position: torch.Tensor = index.meta["val"]
    if position.dim() != 1 or position.dtype not in (torch.int64, torch.int32):
        return False
    shape[dim] = position.shape[0]
    return len(shape) == values.meta["val"].dim() and all(map(_same, shape, values.meta["val"].shape))


def _same(one: object, other: object) -> bool:
    return str(one) == str(other)
