"""fp16 and bf16: what is computed in which type."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
import torch
from engines.onnx_cases import assert_onnx_matches, export_rtx
from engines.test_tensorrt_models import CASES
from export_cases import model_of, rows

X = rows((1, 2, 4), (5, 8, 12), name="x")


def types_of(model: onnx.ModelProto, operator: str) -> set[int]:
    """The element types that an operator takes and makes."""
    inferred = onnx.shape_inference.infer_shapes(model)
    values = (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == operator]
    assert nodes
    return {types[name] for node in nodes for name in (*node.input, *node.output) if name}


def convert(forward: Callable[..., object], precision: str = "fp16", **children: torch.nn.Module) -> onnx.ModelProto:
    _, (built,) = export_rtx(model_of(forward, **children), [X], engine_options={"precision": precision})
    return built.model


@pytest.mark.parametrize("name", ["block", "image", "types", "constant"])
def test_fp16_matches_eager_and_keeps_inputs_and_outputs(name: str) -> None:
    model, inputs = CASES[name]
    program, (built,) = export_rtx(model, inputs, engine_options={"precision": "fp16"})
    assert not program.left_outside
    assert_onnx_matches(model, inputs, built.model, rtol=1e-2, atol=5e-3)


@pytest.mark.parametrize(
    ("precision", "expected"), [("fp16", onnx.TensorProto.FLOAT16), ("bf16", onnx.TensorProto.BFLOAT16)]
)
def test_products_are_computed_in_the_chosen_type(precision: str, expected: int) -> None:
    model = convert(lambda self, x: self.l(x), precision, l=torch.nn.Linear(4, 4))
    assert types_of(model, "Gemm") == {expected}


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_single_precision_casts_nothing(precision: str) -> None:
    model = convert(lambda self, x: self.l(x), precision, l=torch.nn.Linear(4, 4))
    assert "Cast" not in [node.op_type for node in model.graph.node]


def test_sensitive_operators_stay_in_float32() -> None:
    model = convert(lambda self, x: self.l(x).pow(2).mean(1), l=torch.nn.Linear(4, 4))
    assert types_of(model, "ReduceMean") - {onnx.TensorProto.INT64} == {onnx.TensorProto.FLOAT}


def test_weights_follow_the_values_that_they_meet() -> None:
    model = convert(lambda self, x: self.norm(self.l(x)), l=torch.nn.Linear(4, 4), norm=torch.nn.LayerNorm(4))
    assert types_of(model, "LayerNormalization") == {onnx.TensorProto.FLOAT16}


def test_plan_in_fp16_is_half_as_large() -> None:
    model = model_of(lambda self, x: self.l(x), l=torch.nn.Linear(1024, 1024))
    inputs = [rows((1, 2, 4), tail=(1024,))]
    single, half = (
        export_rtx(model, inputs, engine_options={"precision": precision})[0].delegates[0]["bytes"]
        for precision in ("fp32", "fp16")
    )
    assert single - half > 1.8 * 1024 * 1024
