"""Whether the shapes that a program's operators have at given sizes are those that its formulas say."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import sympy
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.shapes import has_unbacked

Sizes = Mapping[sympy.Symbol, int]


class _UnknownSizeError(Exception):
    """A size follows from more than the chosen sizes."""


# An operator whose shape depends on data, or that has no rule for its shape, can't be asked.
_UNKNOWN = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
    NotImplementedError,
)


class WrongFormula(NamedTuple):
    """An operator whose formula does not hold."""

    node: torch.fx.Node
    got: str
    expected: str


class Formulas:
    """The shape formulas of one program. Only shapes are computed, no values."""

    def __init__(self, program: ExportedProgram) -> None:
        self._mode = FakeTensorMode()
        self._fixed: dict[torch.fx.Node, Any] = {}
        self._dynamic = [
            node
            for node in program.graph.nodes
            if node.op == "call_function" and aten_op(node.target) and _can_be_asked(node)
        ]

    def first_wrong(self, sizes: Sizes) -> WrongFormula | None:
        """The first operator that has another shape at these sizes, or fails there."""
        evaluation = _Evaluation(sizes, self._mode)
        values: dict[torch.fx.Node, Any] = {}

        def value(node: torch.fx.Node) -> Any:
            cache = values if _is_dynamic(node) else self._fixed
            if node not in cache:
                cache[node] = pytree.tree_map(evaluation.of, node.meta["val"])
            return cache[node]

        for node in self._dynamic:
            try:
                expected = value(node)
                args, kwargs = (torch.fx.map_arg(given, value) for given in (node.args, node.kwargs))
            except _UnknownSizeError:
                continue
            try:
                with self._mode:
                    got = node.target(*args, **kwargs)
            except _UNKNOWN:
                continue
            except Exception as error:
                return WrongFormula(node, str(error).strip().partition("\n")[0], _shapes(expected))
            if _shapes(got) != _shapes(expected):
                return WrongFormula(node, _shapes(got), _shapes(expected))
        return None


def shape_at(tensor: torch.Tensor, sizes: Sizes) -> tuple[int, ...]:
    """The shape of a tensor at these sizes."""
    number = _Evaluation(sizes).number
    return tuple(map(number, tensor.shape))


class _Evaluation:
    """Formulas as numbers, and tensors of formulas as tensors without values, at one choice of sizes."""

    def __init__(self, sizes: Sizes, mode: FakeTensorMode | None = None) -> None:
        self._mode = mode or nullcontext()
        self._sizes = {symbol: sympy.Integer(size) for symbol, size in sizes.items()}
        self._known: dict[object, Any] = {}

    def of(self, leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor):
            return self.number(leaf)
        shape, strides = (list(map(self.number, dims)) for dims in (leaf.shape, leaf.stride()))
        with self._mode:
            return torch.empty_strided(shape, strides, dtype=leaf.dtype, device=leaf.device)

    def number(self, size: Any) -> Any:
        kind = next((number for symbolic, number in _NUMBERS if isinstance(size, symbolic)), None)
        if kind is None:
            return size
        expr = size.node.expr
        if expr not in self._known:
            value = expr.xreplace(self._sizes)
            if value.free_symbols:
                raise _UnknownSizeError
            self._known[expr] = kind(value)
        return self._known[expr]


_SYMBOLIC = (torch.SymInt, torch.SymBool, torch.SymFloat)
_NUMBERS = ((torch.SymInt, int), (torch.SymBool, bool), (torch.SymFloat, float))


def _can_be_asked(node: torch.fx.Node) -> bool:
    every = [node, *node.all_input_nodes]
    return (
        any(map(_is_dynamic, every))
        and all("val" in each.meta for each in every)
        and not any(has_unbacked(leaf) for each in every for leaf in pytree.tree_leaves(each.meta["val"]))
    )


def _is_dynamic(node: torch.fx.Node) -> bool:
    for leaf in pytree.tree_leaves(node.meta.get("val")):
        sizes = [*leaf.shape, *leaf.stride()] if isinstance(leaf, torch.Tensor) else [leaf]
        if any(isinstance(size, _SYMBOLIC) for size in sizes):
            return True
    return False


def _shapes(value: Any) -> str:
    leaves = [tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf for leaf in pytree.tree_leaves(value)]
    return ", ".join(map(str, leaves))
