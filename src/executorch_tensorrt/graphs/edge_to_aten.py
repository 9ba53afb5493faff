"""From the edge dialect back to ATen operators."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.dim_order_utils import get_memory_format
from torch.export import ExportedProgram


def edge_to_aten(program: ExportedProgram) -> ExportedProgram:
    """Copy an edge program with every operator replaced by its ATen original; weights are shared."""
    module = copy.copy(program.graph_module)
    module.graph = copy.deepcopy(program.graph)
    for node in module.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, EdgeOpOverload):
            _restore(node)
    module.recompile()
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        constants=program.constants,
    )


def _restore(node: torch.fx.Node) -> None:
    op = cast(EdgeOpOverload, node.target)._op
    if op.namespace != "dim_order_ops":
        node.target = op
        return
    kwargs = dict(node.kwargs)
    order = kwargs.pop("dim_order", None)
    node.target = _DIM_ORDER_OPS[op._schema.name]
    node.kwargs = {**kwargs, "memory_format": get_memory_format(None if order is None else list(cast(Any, order)))}


_DIM_ORDER_OPS = {
    "dim_order_ops::_to_dim_order_copy": torch.ops.aten._to_copy.default,
    "dim_order_ops::_empty_dim_order": torch.ops.aten.empty.memory_format,
    "dim_order_ops::_clone_dim_order": torch.ops.aten.clone.default,
}
