"""What branches and loops leave behind: ExecuTorch plans the memory of all of a graph's in one place."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from executorch.exir import EdgeProgramManager
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportGraphSignature

_CLONE = cast(Any, exir_ops).edge.dim_order_ops._clone_dim_order.default


def copy_branch_outputs(edge: EdgeProgramManager) -> None:
    """Copy what a branch or loop computes into memory of the graph around it, where another branch or loop follows.

    A `torch.cond` gives its branch's tensors on where they are, and the next one's branches are planned over them.
    """
    for name in edge.methods:
        program = edge.exported_program(name)
        _copy_outputs(program.graph_module, program.graph_signature)


def _copy_outputs(module: torch.fx.GraphModule, signature: ExportGraphSignature | None) -> None:
    for child in module.children():
        if isinstance(child, torch.fx.GraphModule):
            _copy_outputs(child, None)
    for call in list(filter(_runs_graphs, module.graph.nodes))[:-1]:
        for output in [user for user in call.users if user.target is operator.getitem]:
            value = output.meta["val"]
            if not isinstance(value, torch.Tensor):
                continue
            with module.graph.inserting_after(output):
                copy = module.graph.call_function(_CLONE, (output,), {"dim_order": list(value.dim_order())})
            copy.meta = dict(output.meta)
            output.replace_all_uses_with(copy)
            copy.args = (output,)
            if signature is not None:
                signature.replace_all_uses(output.name, copy.name)
    module.recompile()


def _runs_graphs(node: torch.fx.Node) -> bool:
    """Whether a node is a branch or a loop over graphs of its own."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) and node.target is not executorch_call_delegate
