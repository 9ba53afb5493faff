"""Buffers that TensorRT engines own: further inputs and outputs of the plan, which its ONNX model updates."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir
import pytest
import torch
from engines.onnx_cases import Built, Evaluator, export_rtx
from gpu.decoder import Decoder, decoder_inputs

from executorch_tensorrt import export
from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.engines.tensorrt.onnx_model import make_onnx_model
from executorch_tensorrt.exporter import ExportedEngineProgram
from executorch_tensorrt.program import read_program

WIDTH, LENGTH = 16, 8
STEPS = [(4, 0), (1, 4), (2, 5), (1, 2), (4, 3)]
"""Calls that follow each other: number of positions and the first one."""


@pytest.fixture(scope="module")
def exported() -> tuple[ExportedEngineProgram, Built, Decoder]:
    torch.manual_seed(0)
    model = Decoder(WIDTH, 2, LENGTH).eval()
    program, (built,) = export_rtx(
        model, decoder_inputs(WIDTH, (1, 1, 1), (1, 4, LENGTH)), take_over_mutable_buffer=True, device="cuda:0"
    )
    return program, built, model


def assert_steps_match(model: Decoder, onnx_model: onnx.ModelProto, state: Sequence[str]) -> None:
    """Feed the updates of a call to the next one."""
    evaluate = Evaluator(onnx_model)
    model.keys.zero_()
    model.values.zero_()
    caches = [torch.zeros_like(model.keys), torch.zeros_like(model.values)]
    for count, first in STEPS:
        x = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(first))
        positions = torch.arange(first, first + count)
        with torch.no_grad():
            expected = [model(x, positions), model.keys, model.values]
        got = evaluate({"x": x, "positions": positions, **dict(zip(state, caches, strict=True))})
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        caches = got[1:]


def test_owned_buffers_are_inputs_and_outputs_of_a_plan(
    exported: tuple[ExportedEngineProgram, Built, Decoder],
) -> None:
    program, built, model = exported
    (delegate,) = read_program(program.buffer).methods[0].delegates
    metadata = unpack_metadata(bytes(delegate.blob))
    assert not program.left_outside
    assert metadata["aliased_io"] == []
    state = metadata["executorch_tensorrt"]["state"]
    assert [item["name"] for item in state] == ["keys", "values"]
    assert [item["input"] for item in state] == [item.name for item in built.model.graph.input[2:]]
    assert [item["output"] for item in state] == [item.name for item in built.model.graph.output[1:]]
    arguments = metadata["executorch_tensorrt"]["arguments"]
    assert arguments == {"inputs": [0, 1, None, None], "outputs": [2, None, None]}
    assert_steps_match(model, built.model, [item["input"] for item in state])


def test_owned_buffers_are_updated_in_operator_set_17(exported: tuple[ExportedEngineProgram, Built, Decoder]) -> None:
    _, built, model = exported
    onnx_model = ir.to_proto(make_onnx_model(built.request, 17).model)
    assert_steps_match(model, onnx_model, [item.name for item in onnx_model.graph.input[2:]])


def test_methods_own_the_same_buffers() -> None:
    model = Decoder(WIDTH, 2, LENGTH).eval()
    methods = {"decode": decoder_inputs(WIDTH, (1, 1, 1)), "prefill": decoder_inputs(WIDTH, (2, 4, LENGTH))}
    program = export(dict.fromkeys(methods, model), methods, engine="tensorrt_rtx", take_over_mutable_buffer=True)
    assert [delegate["state"] for delegate in program.delegates] == [["keys", "values"]] * 2
