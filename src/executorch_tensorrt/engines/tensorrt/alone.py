"""Programs of one node, to see what becomes of it."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from executorch_tensorrt.graphs.nodes import is_size


def used_parts(node: torch.fx.Node) -> list[int]:
    """Which tensors of a node that makes several are used; the first if none is."""
    used = (user.args[1] for user in node.users if user.target is operator.getitem)
    return sorted({index for index in used if isinstance(index, int)} or {0})


def alone(node: torch.fx.Node) -> ExportedProgram:
    """A program of one operator of another. Its tensors become inputs; sizes are computed as they are there."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}

    def copy(source: torch.fx.Node) -> torch.fx.Node:
        if source not in copies:
            if source is node or is_size(source):
                inputs = {argument: copy(argument) for argument in source.all_input_nodes}
                copies[source] = graph.node_copy(source, inputs.__getitem__)
            else:
                copies[source] = _placeholder(graph, source)
        return copies[source]

    copied = copy(node)
    value = node.meta["val"]
    if isinstance(value, (list, tuple)):
        parts = [(index, value[index]) for index in used_parts(node)]
        outputs = [_with_value(graph.call_function(operator.getitem, (copied, index)), part) for index, part in parts]
    else:
        outputs = [copied]
    graph.output(tuple(outputs))
    return _program(graph, outputs)


def _placeholder(graph: torch.fx.Graph, source: torch.fx.Node) -> torch.fx.Node:
    first = next(iter(graph.nodes), None)
    with graph.inserting_before(first) if first is not None else graph.inserting_after():
        return _with_value(graph.placeholder(source.name), source.meta["val"])


def _with_value(node: torch.fx.Node, value: Any) -> torch.fx.Node:
    node.meta["val"] = value
    return node


def _program(graph: torch.fx.Graph, outputs: Sequence[torch.fx.Node]) -> ExportedProgram:
    taken = [TensorArgument(node.name) for node in graph.nodes if node.op == "placeholder"]
    given = [TensorArgument(node.name) for node in outputs]
    in_spec, out_spec = (pytree.tree_flatten(tree)[1] for tree in ((tuple(taken), {}), tuple(given)))
    return ExportedProgram(
        root=torch.nn.Module(),
        graph=graph,
        graph_signature=ExportGraphSignature(
            [InputSpec(InputKind.USER_INPUT, argument, None) for argument in taken],
            [OutputSpec(OutputKind.USER_OUTPUT, argument, None) for argument in given],
        ),
        state_dict={},
        range_constraints={},
        module_call_graph=[ModuleCallEntry("", ModuleCallSignature([*taken], [*given], in_spec, out_spec))],
        verifiers=[EXIREdgeDialectVerifier(EdgeCompileConfig(_check_ir_validity=False), class_only=True)],  # pyright: ignore[reportArgumentType]
    )
