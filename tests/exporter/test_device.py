"""Programs whose memory is planned on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from export_cases import model_of, rows

from executorch_tensorrt import export
from executorch_tensorrt.exporter.device import device_index, device_specs
from executorch_tensorrt.program import Method, read_program
from executorch_tensorrt.program.blobs import read_engine

H2D, D2H = "et_copy::_h2d_copy.out", "et_copy::_d2h_copy.out"
INPUTS = [rows((1, 2, 4), (5, 8, 12), name="x")]
ROW_BYTES = 12 * 4 * 4  # of the largest input, output and everything between them

MODELS: dict[str, Callable[..., Any]] = {
    "one engine": lambda self, x: x * 2,
    "two engines": lambda self, x: torch.cumsum(x * 2, 0) * 2,
    "a shared input": lambda self, x: torch.cumsum(x * 2, 0) + x,
    "a value that stays": lambda self, x: (lambda y: torch.cumsum(y, 0) + y)(x * 2),
}


@cache
def planned(model: str, device: str | None, host_io: bool = False) -> Method:
    pytest.importorskip("tensorrt_rtx", reason="pip install 'executorch-tensorrt[tensorrt]'")
    options = {"engine": "tensorrt_rtx", "torch_executed_ops": ["aten.cumsum.default"]}
    program = export(model_of(MODELS[model]), INPUTS, device=device, host_io=host_io, **options)  # type: ignore[arg-type]
    (method,) = read_program(program.buffer).methods
    return method


def steps_of(method: Method) -> list[str]:
    return [step.name or step.kind for step in method.instructions]


@pytest.mark.parametrize(
    "device", ["cuda", "cuda:", "cuda:-1", "cuda:128", "cuda:1000", "CUDA:0", "gpu:0", "cpu", "", 0, True]
)
def test_export_refuses_a_device_that_is_none(device: Any) -> None:
    with pytest.raises(ValueError, match="device is not valid: got .*, allowed 'cuda:0' to 'cuda:127'; correct it."):
        export(model_of(MODELS["one engine"]), INPUTS, engine="tensorrt_rtx", device=device)


def test_export_refuses_a_device_for_engines_on_the_host() -> None:
    """They work on it when the advice is followed."""
    with pytest.raises(ValueError, match="got 'cuda:0' for engine 'cpu', which works on the host, allowed None; leave"):
        export(model_of(MODELS["one engine"]), INPUTS, device="cuda:0")
    export(model_of(MODELS["one engine"]), INPUTS, device=None)


@pytest.mark.parametrize("index", [0, 1, 127])
def test_specs_say_the_device(index: int) -> None:
    assert device_index(device_specs(f"cuda:{index}", "tensorrt")) == index


def test_specs_without_a_device_are_for_the_first() -> None:
    assert device_index(device_specs(None, "tensorrt")) == 0


@pytest.mark.parametrize(("device", "index"), [(None, 0), ("cuda:0", 0), ("cuda:1", 1)])
def test_engine_says_its_device(device: str | None, index: int) -> None:
    (delegate,) = planned("one engine", device).delegates
    assert read_engine(delegate).header.metadata.device_id == index


def test_program_without_a_device_has_all_memory_on_the_host() -> None:
    method = planned("two engines", None)
    assert method.devices == {}
    assert steps_of(method) == ["delegate", "aten::cumsum.out", "delegate"]


def test_inputs_and_outputs_on_a_device_are_the_callers_memory() -> None:
    method = planned("one engine", "cuda:0")
    assert [value.arena for value in (*method.inputs, *method.outputs)] == [-1, -1]
    assert sum(method.planned_bytes) == 0
    assert steps_of(method) == ["delegate"]


def test_values_go_to_the_host_for_operators_between_engines() -> None:
    method = planned("two engines", "cuda:0")
    assert steps_of(method) == ["delegate", D2H, "aten::cumsum.out", H2D, "delegate"]
    assert method.devices == {1: "cuda:0"}
    assert method.planned_bytes[1] == ROW_BYTES


def test_values_between_engines_stay_on_the_device() -> None:
    """Only what the operator reads and writes is copied."""
    method = planned("a value that stays", "cuda:0")
    assert steps_of(method) == ["delegate", D2H, "aten::cumsum.out", H2D, "delegate"]
    first, second = (step.arguments for step in method.instructions if step.kind == "delegate")
    assert set(first[1:]) & set(second[:-1])
    assert method.planned_bytes[1] == 2 * ROW_BYTES


def test_input_that_engines_share_is_on_the_host_with_a_copy_for_each() -> None:
    method = planned("a shared input", "cuda:0")
    assert steps_of(method) == [H2D, "delegate", D2H, "aten::cumsum.out", H2D, H2D, "delegate"]
    copied = [step.arguments[0] for step in method.instructions if step.name == H2D]
    assert copied.count(method.inputs[0].index) == 2
    assert method.outputs[0].arena == -1


def test_buffer_that_the_method_updates_is_on_the_host_with_a_copy_for_the_engine() -> None:
    pytest.importorskip("tensorrt_rtx", reason="pip install 'executorch-tensorrt[tensorrt]'")
    counter = model_of(lambda self, x: self.count.add_(1) + x, count=torch.ones(4))
    (method,) = read_program(export(counter, INPUTS, engine="tensorrt_rtx", device="cuda:0").buffer).methods
    assert steps_of(method) == [H2D, H2D, "delegate", D2H, "aten::copy_"]


@pytest.mark.parametrize("model", MODELS)
def test_host_io_keeps_inputs_and_outputs_on_the_host(model: str) -> None:
    method = planned(model, "cuda:1", host_io=True)
    assert [value.arena for value in (*method.inputs, *method.outputs)] == [0, 0]
    assert method.devices == {1: "cuda:1"}
    steps = steps_of(method)
    assert (steps[0], steps[-1]) == (H2D, D2H)
