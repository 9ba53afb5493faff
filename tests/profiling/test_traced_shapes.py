"""Shapes of inputs, from what engines traced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest

from executorch_tensorrt.profiling import capture, from_etdump
from executorch_tensorrt.profiling.session import Event, Run
from executorch_tensorrt.profiling.traced_shapes import shape_finder
from executorch_tensorrt.program import Instruction, Method, read_program
from executorch_tensorrt.program.declaration import declare


def method_of(model: Callable[[], models.Exported]) -> Method:
    return read_program(model().buffer).methods[0]


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
