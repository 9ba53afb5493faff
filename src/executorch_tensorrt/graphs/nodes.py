"""What a node of a graph is."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload


def aten_op(target: object) -> torch._ops.OpOverload | None:
    """The operator behind an edge or ATen call target; None for Python functions and higher-order operators."""
    if isinstance(target, EdgeOpOverload):
        return target._op
    return target if isinstance(target, torch._ops.OpOverload) else None


def is_size(node: torch.fx.Node) -> bool:
    """Whether a node computes with sizes: its value is a number that follows from shapes."""
    value = node.meta.get("val")
    return node.op == "call_function" and isinstance(
        value, (torch.SymInt, torch.SymBool, torch.SymFloat, int, float, bool)
    )
