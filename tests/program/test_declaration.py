"""What programs say of their inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import models
import pytest

from executorch_tensorrt.program import Method, Value, read_program
from executorch_tensorrt.program.declaration import Dim, declare

TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def method_of(model: Callable[[], models.Exported]) -> Method:
    return read_program(model().buffer).methods[0]


def test_declare_names_inputs_and_their_ranges() -> None:
    found = declare(method_of(models.two_inputs))
    assert [(item.name, item.dtype, item.largest) for item in found.inputs] == [
        ("ids", "int64", [1, 32]),
        ("mask", "int64", [1, 32]),
    ]
    (symbol,) = found.profiles[0]
    assert [item.dims for item in found.inputs] == [[Dim("", 1, 1), Dim(symbol, 1, 0)]] * 2
    assert found.profiles == [{symbol: (2, 4, 8)}, {symbol: (9, 16, 32)}]


def with_spec(method: Method, text: str) -> Method:
    specs = (("etrt.profiles", text.encode()),)
    return replace(method, delegates=(replace(method.delegates[0], compile_specs=specs),))


@pytest.mark.parametrize("dim", [["s", 2, 1], ["s", -1, 65]])
def test_declare_reads_dims_that_are_formulas(dim: list[Any]) -> None:
    record = {"profiles": [{"s": [1, 2, 8]}], "inputs": [{"name": "x", "dims": [dim, 4]}]}
    found = declare(with_spec(method_of(models.rows), json.dumps(record)))
    assert found.inputs[0].dims == [Dim(*dim), Dim("", 1, 4)]


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[" * 100_000,
        "{}",
        '{"profiles": [{"s": [1, 2]}], "inputs": []}',
        '{"profiles": [], "inputs": []}',
        '{"profiles": [], "inputs": [{"name": "x", "dims": [4]}]}',
        '{"profiles": [], "inputs": [{"name": "x", "dims": [["s", 0, 0], 4]}]}',
        '{"profiles": [], "inputs": [{"name": "x", "dims": [["s", "1", 0], 4]}]}',
        '{"profiles": [], "inputs": [{"name": "x", "dims": [4.5, 4]}]}',
    ],
)
def test_declare_falls_back_on_planned_memory(record: str) -> None:
    found = declare(with_spec(method_of(models.rows), record))
    assert found.profiles == []
    assert found.inputs[0].name == ""
    assert found.inputs[0].dims == [Dim("0.0", 1, 0), Dim("0.1", 1, 0)]
    assert found.inputs[0].largest == [64, 4]


def test_declare_reads_a_program_of_torch_tensorrt() -> None:
    found = declare(read_program(TORCH_TENSORRT).methods[0])
    assert found.profiles == []
    assert [item.dtype for item in found.inputs] == ["float32"]
    assert all(dim.symbol for item in found.inputs for dim in item.dims)


def test_declare_keeps_what_is_no_tensor() -> None:
    method = method_of(models.two_inputs)
    ids, mask = method.inputs
    found = declare(replace(method, inputs=(ids, Value("int"), mask)))
    assert [(item.name, item.dtype) for item in found.inputs] == [("ids", "int64"), ("", "int"), ("mask", "int64")]
