"""Formulas: shapes that operators have at given sizes, against those that a program says."""

from __future__ import annotations

import pytest
import sympy
import torch
from export_cases import model_of
from torch.export import Dim, ExportedProgram

from executorch_tensorrt.exporter.formulas import Formulas, shape_at
from executorch_tensorrt.graphs.shapes import tensor_exprs


def traced() -> tuple[ExportedProgram, sympy.Symbol, list[torch.fx.Node]]:
    """x [S, 4] -> [2*S, 4]; and what the sum of the positive values is, which depends on data."""
    model = model_of(lambda self, x: (torch.cat([x, x]), torch.masked_select(x, x > 0).sum()))
    program = torch.export.export(model, (torch.ones(5, 4),), dynamic_shapes=({0: Dim("s", min=2, max=9)},))
    (node,) = (node for node in program.graph.nodes if node.op == "placeholder")
    (symbol,) = tensor_exprs(node.meta["val"])[0].free_symbols
    return program, symbol, list(program.graph.nodes)


@pytest.mark.parametrize("size", [1, 2, 9, 1000])
def test_formulas_hold_at_every_size(size: int) -> None:
    program, symbol, nodes = traced()
    assert Formulas(program).first_wrong({symbol: size}) is None
    assert shape_at(nodes[1].meta["val"], {symbol: size}) == (2 * size, 4)


def test_formulas_find_another_shape() -> None:
    program, symbol, nodes = traced()
    nodes[1].meta["val"] = nodes[0].meta["val"]
    wrong = Formulas(program).first_wrong({symbol: 3})
    assert wrong is not None
    assert (wrong.node, wrong.got, wrong.expected) == (nodes[1], "(6, 4)", "(3, 4)")


def test_formulas_find_an_operator_that_fails() -> None:
    model = model_of(lambda self, x: x.narrow(0, 0, 3))
    program = torch.export.export(model, (torch.ones(6, 4),), dynamic_shapes=({0: Dim("s", min=3, max=9)},))
    (symbol,) = program.range_constraints
    formulas = Formulas(program)
    assert formulas.first_wrong({symbol: 3}) is None
    wrong = formulas.first_wrong({symbol: 2})
    assert wrong is not None
    assert "exceeds dimension size (2)" in wrong.got
