"""export(): how inputs are given and called, by position, by name and nested."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from export_cases import export_and_compare, model_of, normal, rows

from executorch_tensorrt import Input, Module
from executorch_tensorrt.exporter import export
from executorch_tensorrt.exporter.examples import Inputs

ROWS = rows((1, 1, 1), (2, 4, 9))
ODD = ["a%s", 'a"b', "a'b", "a\\b", "größe", "日本", "a\nb", "{}", "io_bindings"]


class Case(NamedTuple):
    """A model, its inputs, and what its engine calls them."""

    forward: Callable[..., Any]
    inputs: Inputs
    names: list[str]


def named(model: torch.nn.Module, größe: torch.Tensor, länge: torch.Tensor) -> torch.Tensor:
    return größe * 2 + länge


def keyed(model: torch.nn.Module, given: dict[Any, torch.Tensor]) -> torch.Tensor:
    total = torch.zeros(1, 4)
    for factor, value in enumerate(given.values()):
        total = total + value * (factor + 1)
    return total


def nested(model: torch.nn.Module, given: dict[str, Any], pair: list[torch.Tensor]) -> dict[str, Any]:
    return {"first": (given["a"][0] * 2, [given["a"][1]["z"] + 1]), "second": given["b"] + pair[0] - pair[1]}


def keyword_only(model: torch.nn.Module, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
    return x * 2 + scale


def optional(
    model: torch.nn.Module, x: torch.Tensor, mask: torch.Tensor | None = None, bias: torch.Tensor | None = None
) -> torch.Tensor:
    return (x if mask is None else x * mask) * 2 + (0 if bias is None else bias)


def variadic(model: torch.nn.Module, x: torch.Tensor, *others: Any) -> torch.Tensor:
    return x + others[0][0] * 2 + others[1]


def constants(model: torch.nn.Module, x: torch.Tensor, factor: float, count: int, flip: bool) -> torch.Tensor:
    return x * factor + count if flip else x


ACCEPTED = {
    "arguments beyond ASCII": Case(named, [ROWS, ROWS], ["gr__e", "l_nge"]),
    "arguments beyond ASCII, by name": Case(named, {"länge": ROWS, "größe": ROWS}, ["gr__e", "l_nge"]),
    "keys of any kind": Case(
        keyed,
        [{'50% of "größe"\\': ROWS, "日\n": ROWS, "": ROWS, 1: ROWS}],
        ["given_50__of__gr__e__", "given___", "given_", "given_1"],
    ),
    "nested": Case(
        nested,
        [{"a": (ROWS, {"z": ROWS}), "b": Input((1, 4))}, [Input((1, 4)), Input((1, 4))]],
        ["given_a_0", "given_a_1_z", "given_b", "pair_0", "pair_1"],
    ),
    "keyword-only": Case(keyword_only, {"scale": ROWS, "x": ROWS}, ["x", "scale"]),
    "one left out": Case(optional, {"x": ROWS, "bias": ROWS}, ["x", "bias"]),
    "None in place of one": Case(optional, [ROWS, None, ROWS], ["x", "bias"]),
    "any number": Case(variadic, [ROWS, (ROWS,), ROWS], ["x", "others_0_0", "others_1"]),
    "constants": Case(constants, [ROWS, 2.5, 3, True], ["x"]),
}


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_export_accepts_inputs(case: Case) -> None:
    program = export_and_compare(model_of(case.forward), case.inputs)
    assert sorted(program.delegates[0]["inputs"]) == sorted(case.names)


def test_export_calls_inputs_by_their_names_in_messages() -> None:
    for name in ODD:
        message = f"input 1 '{name}' has another number of optimization profiles than input 0: got 3"
        with pytest.raises(ValueError, match=re.escape(message)):
            export(model_of(named), [ROWS, rows((1, 1, 1), (2, 4, 9), (2, 2, 2), name=name)])


@pytest.mark.parametrize(
    ("forward", "inputs", "message"),
    [
        (lambda self, x: x.unfold(0, 7, 1), [rows((1, 8, 16), name="größe %s")], "dim 0 was narrowed"),
        (lambda self, x, y: x + y, [ROWS, rows((1, 1, 1), (2, 4, 10), name="größe %s")], "dim 0 is the same dim as"),
    ],
    ids=["narrowed", "related"],
)
def test_export_calls_inputs_by_their_names_where_the_model_refuses_them(
    forward: Any, inputs: list[Input], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"input \d 'größe %s' {message}"):
        export(model_of(forward), inputs)


def test_export_ignores_names_of_inputs_otherwise() -> None:
    inputs = {name: Input((1, 4), name=name) for name in ODD}
    assert len(set(export(model_of(keyed), [inputs]).delegates[0]["inputs"])) == len(ODD)


def test_export_keeps_constants() -> None:
    """A call passes the same numbers again, and None in the place of a text."""
    model = model_of(lambda self, x, count, mode: x * count if mode == "times" else x)
    module = Module(export(model, [Input((1, 4)), 3, "times"]).buffer)
    (x,) = normal([(1, 4)])
    torch.testing.assert_close(module.forward(x, 3, None)[0], x * 3)
    with pytest.raises(ValueError, match="input 1: got 4, allowed 3, with which the program was exported"):
        module.forward(x, 4, None)


def test_export_orders_named_inputs_as_the_model_does() -> None:
    model = model_of(lambda self, x, y: (x * 2, y + 1))
    y, x = (rows((low, low, low + 2)) for low in (1, 5))
    program = export(model, {"y": y, "x": x})
    assert program.delegates[0]["signature"] == "x[0]=5:5:7,y[0]=1:1:3"
    with pytest.raises(ValueError, match=r"inputs do not name the model's arguments: got z, allowed x, y"):
        export(model, {"x": x, "z": y})


def open_ended(model: torch.nn.Module, **given: torch.Tensor) -> torch.Tensor:
    first, second = given.values()
    return first * 2 + second


@pytest.mark.parametrize(
    ("name", "item", "message"),
    [
        (
            "ö",
            ROWS,
            r"inputs go to the model's \*\*kwargs: got 'a', 'ö', .*; name them in forward, or declare all shapes",
        ),
        (
            "a%",
            Input((1, 4)),
            r"inputs have names that torch.export can't write: got 'a', 'a%', allowed Python identifi",
        ),
    ],
)
def test_export_refuses_what_goes_to_open_keywords(name: str, item: Input, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export(model_of(open_ended), {"a": item, name: item})


def test_export_accepts_static_inputs_that_go_to_open_keywords() -> None:
    export_and_compare(model_of(open_ended), {"a": Input((1, 4)), "ö": Input((1, 4))})


@pytest.mark.parametrize("count", [0, 2])
def test_export_refuses_another_number_of_inputs(count: int) -> None:
    with pytest.raises(ValueError, match=f"inputs do not fit the model's arguments: got {count}"):
        export(torch.nn.Linear(4, 4).eval(), [Input(shape=(2, 4))] * count)
