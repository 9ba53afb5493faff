"""Computing in fp16 or bf16 what bears it, for networks whose types are those of their model."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree as pytree

from executorch_tensorrt.graphs.nodes import aten_op

# Where the time is spent, and sums are kept in float32 inside.
_PRODUCTS = (
    "addbmm", "addmm", "addmv", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "convolution", "einsum", "linear",
    "matmul", "mm", "mv", "scaled_dot_product_attention",
)  # fmt: skip
# What leaves the range of fp16, or loses all digits in it. Softmax and norms do this part in float32 by themselves.
_SENSITIVE = (
    "acos", "asin", "cdist", "cosh", "cumprod", "cumsum", "erfinv", "exp", "exp2", "expm1", "linalg_vector_norm", "log",
    "log10", "log1p", "log2", "logcumsumexp", "logsumexp", "mean", "norm", "pow", "prod", "reciprocal", "rsqrt", "sinh",
    "softplus", "sum", "tan", "var",
)  # fmt: skip


def lower_precision(program: ExportedProgram, dtype: torch.dtype) -> None:
    """Insert casts from and to float32, as `torch.autocast` would; user inputs and outputs keep their types.

    Products take `dtype`, sensitive operators float32, and the rest the widest type of the values that it gets, for
    which weights don't count.
    """
    _Lowering(program, dtype).run()
    outputs = program.graph.output_node().args[0]
    for spec, node in zip(program.graph_signature.output_specs, cast("Sequence[torch.fx.Node]", outputs), strict=True):
        spec.arg = TensorArgument(node.name)
    program.graph_module.recompile()


class _Lowering:
    def __init__(self, program: ExportedProgram, dtype: torch.dtype) -> None:
        self._graph = program.graph
        self._dtype = dtype
        self._singles = {node for node in self._graph.nodes if torch.float32 in _dtypes(node)}
        users = set(program.graph_signature.user_inputs)
        self._weights = {node for node in self._graph.nodes if node.op == "placeholder" and node.name not in users}
        self._casts: dict[tuple[torch.fx.Node, torch.dtype], torch.fx.Node] = {}

    def run(self) -> None:
        for node in list(self._graph.nodes):
            inputs = [argument for argument in node.all_input_nodes if argument in self._singles]
            if not inputs or node.op not in ("call_function", "output"):
                continue
            wanted = self._wanted(node, inputs)
            for argument in inputs:
                if wanted not in _dtypes(argument):
                    node.replace_input_with(argument, self._cast(argument, wanted))
            if node in self._singles and node.kwargs.get("dtype") is None:
                _set_dtype(node, wanted)

    def _wanted(self, node: torch.fx.Node, inputs: Sequence[torch.fx.Node]) -> torch.dtype:
        if node.target is operator.getitem:
            return self._dtype if self._dtype in _dtypes(inputs[0]) else torch.float32
        op = aten_op(node.target)
        name = "" if op is None else op._schema.name.partition("::")[2].lstrip("_")
        mixed = any(
            dtype.is_floating_point for other in node.all_input_nodes if other not in inputs for dtype in _dtypes(other)
        )
        if node.op == "output" or name in _SENSITIVE or mixed:
            return torch.float32
        if name in _PRODUCTS:
            return self._dtype
        values = [argument for argument in inputs if argument not in self._weights]
        return torch.float32 if any(torch.float32 in _dtypes(value) for value in values) else self._dtype

    def _cast(self, argument: torch.fx.Node, wanted: torch.dtype) -> torch.fx.Node:
        if (argument, wanted) not in self._casts:
            after = argument
            while after.next.op == "placeholder":
                after = after.next
            with self._graph.inserting_after(after):
                cast = self._graph.call_function(torch.ops.aten._to_copy.default, (argument,), {"dtype": wanted})
            cast.meta = dict(argument.meta)
            _set_dtype(cast, wanted)
            self._casts[argument, wanted] = cast
        return self._casts[argument, wanted]


def _dtypes(node: torch.fx.Node) -> set[torch.dtype]:
    return {leaf.dtype for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor)}


def _set_dtype(node: torch.fx.Node, wanted: torch.dtype) -> None:
    node.meta["val"] = pytree.tree_map_only(
        torch.Tensor, lambda leaf: leaf.to(wanted) if leaf.dtype.is_floating_point else leaf, node.meta["val"]
    )
