"""From ONNX operator set 18 to 17: the same numbers, or a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from engines.onnx_cases import Evaluator, assert_onnx_matches, export_rtx
from engines.test_tensorrt_models import CASES

from executorch_tensorrt.engines.tensorrt.onnx_model import make_onnx_model
from executorch_tensorrt.engines.tensorrt.opset17 import NoFormError, to_opset_17

FLOAT, INT64 = ir.TensorType(ir.DataType.FLOAT), ir.TensorType(ir.DataType.INT64)


def model_with(
    operator: str,
    constants: Sequence[list[int] | None] = (),
    outputs: int = 1,
    rank: int = 2,
    kind: ir.TensorType = FLOAT,
    **attributes: Any,
) -> ir.Model:
    """float32 x [2, 6] through one operator with further constant inputs."""
    x = ir.Input("x", ir.Shape([2, 6]), FLOAT)
    further = [
        None
        if item is None
        else ir.Value(name=f"c{place}", const_value=ir.tensor(np.array(item, np.int64), name=f"c{place}"))
        for place, item in enumerate(constants)
    ]
    node = ir.node(operator, [x, *further], attributes=attributes, num_outputs=outputs, name="it")
    for place, value in enumerate(node.outputs):
        value.name, value.type, value.shape = f"y{place}", kind, ir.Shape([None] * rank)
    graph = ir.Graph(
        [x],
        node.outputs,
        nodes=[node],
        initializers=[value for value in further if value],
        opset_imports={"": 18},
        name="g",
    )
    return ir.Model(graph, ir_version=10)


def with_dynamic_rows(model: ir.Model) -> ir.Model:
    model.graph.inputs[0].shape = ir.Shape(["rows", 6])
    return model


def both(model: ir.Model) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What a model of set 18 gives, and what the same one gives after it went to 17."""
    arguments = {"x": torch.randn(2, 6, generator=torch.Generator().manual_seed(0))}
    before = Evaluator(ir.to_proto(model))(arguments)
    to_opset_17(model)
    assert model.opset_imports[""] == 17
    return before, Evaluator(ir.to_proto(model))(arguments)


@pytest.mark.parametrize(
    "model",
    [
        lambda: model_with("ReduceMax", [[1]], rank=1, keepdims=0),
        lambda: model_with("ReduceMean", [[0, 1]], keepdims=1),
        lambda: model_with("ReduceL2", [[-1]], keepdims=1),
        lambda: model_with("ReduceProd", rank=0, keepdims=0),
        lambda: model_with("ReduceSum", rank=0, keepdims=0),
        lambda: model_with("ReduceSum", [[]], rank=0, keepdims=0),
        lambda: model_with("ReduceSum", [[0]], rank=1, keepdims=0),
        lambda: model_with("ReduceMin", keepdims=1, noop_with_empty_axes=1),
        lambda: model_with("Split", outputs=3, axis=1, num_outputs=3),
        lambda: model_with("Split", [[2, 4]], outputs=2, axis=1),
        lambda: model_with("Pad", [[1, 2], None, [1]], mode="reflect"),
        lambda: model_with("Pad", [[1, 2, 1, 0]], mode="edge"),
        lambda: model_with("Shape", rank=1, kind=INT64, start=1),
        lambda: model_with("Shape", rank=1, kind=INT64, start=0, end=-1),
        lambda: model_with("Shape", rank=1, kind=INT64),
    ],
)
def test_operator_gives_the_same_in_both_sets(model: Callable[[], ir.Model]) -> None:
    before, after = both(model())
    for one, other in zip(after, before, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: model_with("Split", outputs=4, axis=1, num_outputs=4), "its parts are not known to be equal"),
        (lambda: model_with("Mish"), "it is new in 18"),
        (lambda: with_dynamic_rows(model_with("Squeeze")), "its axes are not known"),
        (lambda: model_with("Resize", [None, None, [4, 12]], antialias=1, mode="linear"), "its antialias is 1"),
    ],
)
def test_operator_without_a_form_is_refused(model: Callable[[], ir.Model], reason: str) -> None:
    with pytest.raises(NoFormError, match=reason) as failure:
        to_opset_17(model())
    assert failure.value.node == "it"


def test_sum_of_all_names_its_axes() -> None:
    model = model_with("ReduceSum", rank=0, keepdims=0)
    to_opset_17(model)
    (node,) = model.graph
    assert node.inputs[1] is not None
    assert node.inputs[1].const_value is not None
    assert node.inputs[1].const_value.numpy().tolist() == [0, 1]


def test_reduction_with_computed_axes_is_refused() -> None:
    model = model_with("ReduceMax", [[1]], keepdims=0)
    (node,) = model.graph
    shape = ir.node("Shape", [model.graph.inputs[0]], name="axes")
    model.graph.insert_before(node, shape)
    node.replace_input_with(1, shape.outputs[0])
    with pytest.raises(NoFormError, match="its input 1 is computed"):
        to_opset_17(model)


def test_size_of_one_dim_asks_for_it_in_words_that_tensorrt_8_knows() -> None:
    """Its parser gives all of a shape, and finds no dims of size 1 by itself."""
    _, (built,) = export_rtx(*CASES["sizes"])
    nodes = list(make_onnx_model(built.request, 17).model.graph)
    shapes = [node for node in nodes if node.op_type == "Shape"]
    assert shapes
    assert not any(node.attributes for node in shapes)
    assert all(len(node.inputs) == 2 for node in nodes if node.op_type == "Squeeze")
    assert not any(node.op_type == "Constant" for node in nodes)


@pytest.mark.parametrize("name", ["block", "mask", "image", "sizes", "decomposed"])
def test_partition_matches_eager_in_set_17(name: str) -> None:
    model, inputs = CASES[name]
    _, (built,) = export_rtx(model, inputs)
    converted = ir.to_proto(make_onnx_model(built.request, 17).model)
    assert {entry.domain: entry.version for entry in converted.opset_import} == {"": 17}
    assert_onnx_matches(model, inputs, converted)
