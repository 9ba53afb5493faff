"""What programs say of their inputs, and shapes that engines traced."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest

from executorch_tensorrt.profiling import capture, from_etdump
from executorch_tensorrt.profiling.declared import declare, shape_finder
from executorch_tensorrt.profiling.session import Dim, Event, Run
from executorch_tensorrt.program import Instruction, Method, Value, read_program

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


def ones(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[Any, ...]:
    return tuple(np.ones(shape, dtype) for shape in shapes)


@pytest.mark.parametrize(
    ("model", "sets"),
    [
        (models.rows, [ones((2, 4)), ones((40, 4))]),
        (models.two_inputs, [ones((1, 5), (1, 5), dtype="int64")]),
        (models.static_beside_dynamic, [ones((1, 4), (7, 4))]),
        (models.no_inputs, [()]),
    ],
)
def test_from_etdump_finds_the_shapes_that_capture_saw(
    model: Callable[[], models.Exported], sets: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    captured = capture(model().buffer, sets, runs=4, level="delegate", output=tmp_path)
    found = from_etdump(model().buffer, tmp_path / "trace.etdp")
    assert [(run.shapes, run.dtypes) for run in found.runs] == [(run.shapes, run.dtypes) for run in captured.runs]
    assert found.declarations == captured.declarations


def traced(shapes: Any, instruction: int = 0) -> Run:
    metadata = {"shapes": shapes}
    event = Event("torchtrt.delegate", "delegate", 0.0, 1.0, instruction=instruction, metadata=metadata)
    return Run("forward", 0, 1.0, [], [], {}, [event])


@pytest.mark.parametrize("shapes", [None, "x", [[2, "x"]], [[2]], [], [[2, 4], [2, 4]]])
def test_shape_finder_leaves_runs_that_tell_nothing(shapes: Any) -> None:
    method = method_of(models.rows)
    run = traced(shapes)
    found = shape_finder(method, declare(method))(run)
    assert found.shapes == ([[2, 4]] if shapes == [[2, 4], [2, 4]] else [])
    assert shape_finder(method, declare(method))(traced([[2, 4]], instruction=9)).shapes == []


def test_shape_finder_derives_inputs_that_no_engine_gets() -> None:
    """`mask` goes to a kernel alone, but has the same symbol as `ids`."""
    method = method_of(models.two_inputs)
    ids, _ = (value.index for value in method.inputs)
    method = replace(method, instructions=(Instruction("delegate", delegate=0, arguments=(ids, 99)),))
    assert shape_finder(method, declare(method))(traced([[1, 6]])).shapes == [[1, 6], [1, 6]]


def test_shape_finder_follows_inputs_to_the_device() -> None:
    method = method_of(models.rows)
    (x,) = (value.index for value in method.inputs)
    steps = (
        Instruction("kernel", name="et_copy::_h2d_copy.out", arguments=(x, 50, 50)),
        Instruction("delegate", delegate=0, arguments=(50, 51)),
    )
    moved = replace(method, instructions=steps)
    assert shape_finder(moved, declare(moved))(traced([[2, 4]], instruction=1)).shapes == [[2, 4]]
    computed = replace(moved, instructions=(replace(steps[0], name="aten::exp.out"), steps[1]))
    assert shape_finder(computed, declare(computed))(traced([[2, 4]], instruction=1)).shapes == []
