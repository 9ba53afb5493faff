"""Shape expressions: ranges, affine forms, and how they are written in a blob."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod

from executorch_tensorrt.graphs.ranged import generic_size
from executorch_tensorrt.graphs.shapes import (
    Affine,
    DimRange,
    ProfileTable,
    as_affine,
    describe_shapes,
    expr_to_json,
    is_expressible,
    range_of,
)

B, S = sympy.symbols("b s", integer=True, positive=True)
ONE = sympy.Integer(1)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (S, (2, 4, 8)),
        (2 * S + 1, (5, 9, 17)),
        (65 - S, (57, 61, 63)),
        (B * S, (2, 8, 24)),
        (FloorDiv(S, 2), (1, 2, 4)),
        (Max(S, 5), (5, 5, 8)),
        (sympy.Integer(7), (7, 7, 7)),
    ],
)
def test_range_of_covers_an_expression(expr: sympy.Expr, expected: tuple[int, int, int]) -> None:
    assert range_of(expr, {"s": DimRange(2, 4, 8), "b": DimRange(1, 2, 3)}) == expected


@given(st.integers(1, 9), st.integers(-9, 9).filter(bool), st.integers(-9, 9), st.integers(0, 20))
def test_range_of_holds_every_value_of_an_affine_expression(low: int, scale: int, offset: int, width: int) -> None:
    span = range_of(scale * S + offset, {"s": DimRange(low, low, low + width)})
    values = [scale * size + offset for size in range(low, low + width + 1)]
    assert (span.min, span.max) == (min(values), max(values))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (S, Affine(S, 1, 0)),
        (65 - S, Affine(S, -1, 65)),
        (3 * S - 2, Affine(S, 3, -2)),
        (S * B, None),
        (S**2, None),
        (FloorDiv(S, 2), None),
        (ONE, None),
    ],
)
def test_as_affine_reads_one_symbol(expr: sympy.Expr, expected: Affine | None) -> None:
    assert as_affine(expr) == expected


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (sympy.Integer(3), 3),
        (S, "s0"),
        (2 * S + 1, ["add", 1, ["mul", 2, "s0"]]),
        (65 - S, ["add", 65, ["mul", -1, "s0"]]),
        (S**2, ["mul", "s0", "s0"]),
        (FloorDiv(S, 3), ["floordiv", "s0", 3]),
        (Mod(S, 3), ["mod", "s0", 3]),
        (Min(S, 3), ["min", 3, "s0"]),
    ],
)
def test_expr_to_json_writes_integers_symbols_and_operations(expr: sympy.Expr, expected: object) -> None:
    written = expr_to_json(expr, {S: "s0"})
    assert written == expected or (
        isinstance(written, list) and sorted(map(str, written)) == sorted(map(str, expected))
    )  # type: ignore[arg-type, call-overload]


def test_expr_to_json_refuses_what_it_can_not_write() -> None:
    assert not is_expressible(sympy.sqrt(S))
    with pytest.raises(ValueError, match="has no form"):
        expr_to_json(sympy.sqrt(S), {S: "s0"})
    with pytest.raises(ValueError, match="does not follow from the inputs"):
        expr_to_json(S, {})


def test_describe_shapes_reads_symbols_off_plain_dims_first() -> None:
    shapes = describe_shapes([[2 * S, B], [S]], [[B * S]])
    assert shapes.symbols == [
        {"input": 0, "dim": 1, "scale": 1, "offset": 0},
        {"input": 1, "dim": 0, "scale": 1, "offset": 0},
    ]
    assert shapes.inputs == [[["mul", 2, "s1"], "s0"], ["s1"]]
    assert shapes.outputs == [[["mul", "s0", "s1"]]]


def test_describe_shapes_solves_an_affine_dim() -> None:
    shapes = describe_shapes([[65 - S]], [[S, sympy.Integer(4)]])
    assert shapes.symbols == [{"input": 0, "dim": 0, "scale": -1, "offset": 65}]
    assert shapes.outputs == [["s0", 4]]


def test_describe_shapes_makes_a_product_a_symbol() -> None:
    shapes = describe_shapes([[B * S]], [[B * S], [2 * B * S]])
    assert shapes.symbols == [{"input": 0, "dim": 0, "scale": 1, "offset": 0}]
    assert shapes.inputs == [["s0"]]
    assert shapes.outputs == [["s0"], [["mul", 2, "s0"]]]


def test_describe_shapes_refuses_outputs_that_do_not_follow() -> None:
    with pytest.raises(ValueError, match="does not follow from the inputs"):
        describe_shapes([[B * S]], [[B]])


def test_profile_table_survives_its_text() -> None:
    profiles = ({"s": DimRange(1, 2, 3)}, {"s": DimRange(4, 5, 6)})
    table = ProfileTable(profiles, "x[0]=1:2:3|4:5:6", [{"name": "x", "dims": [["s", 1, 0], 64]}])
    assert ProfileTable.from_json(table.to_json()) == table


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50), st.sets(st.integers(1, 100), max_size=5))
def test_generic_size_avoids_ends_and_taken_sizes(low: int, up: int, more: int, taken: set[int]) -> None:
    opt, high = low + up, low + up + more
    size = generic_size(low, opt, high, taken)
    assert low <= size <= high
    inside = [other for other in range(max(low + 1, 2), high) if other not in taken and abs(other - opt) <= 64]
    if inside:
        assert size in inside
    elif high > 1:
        assert size > 1
