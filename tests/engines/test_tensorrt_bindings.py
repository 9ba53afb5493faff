"""An engine's inputs and outputs are exactly the partition's, whatever becomes of them inside."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import torch
from engines.onnx_cases import Evaluator
from executorch.exir import to_edge
from torch.export import Dim

from executorch_tensorrt.engines.blob import Binding
from executorch_tensorrt.engines.builder import BuildRequest
from executorch_tensorrt.engines.tensorrt.builder import TensorRTEngineBuilder
from executorch_tensorrt.engines.tensorrt.onnx_model import bind, make_onnx_model
from executorch_tensorrt.graphs.shapes import DimRange

FLOAT = ir.TensorType(ir.DataType.FLOAT)


def test_bind_names_outputs_that_are_inputs_constants_or_the_same() -> None:
    """x, a constant, -x and -x again; a value inside has the name that an input gets."""
    x = ir.Input("x", ir.Shape([2]), FLOAT)
    constant = ir.Value(name="c", const_value=ir.tensor(np.array([5, 6], np.float32), name="c"), type=FLOAT)
    constant.shape = ir.Shape([2])
    inner = ir.node("Identity", [x], name="first")
    inner.outputs[0].name = "input"
    negative = ir.node("Neg", inner.outputs, name="second")
    for value in (*inner.outputs, *negative.outputs):
        value.type, value.shape = FLOAT, ir.Shape([2])
    outputs = [x, constant, negative.outputs[0], negative.outputs[0]]
    graph = ir.Graph([x], outputs, nodes=[inner, negative], initializers=[constant], opset_imports={"": 18}, name="g")
    model = ir.Model(graph, ir_version=10)

    bind(model, ["input"], ["same", "fixed", "negative", "again"])

    proto = ir.to_proto(model)
    assert [item.name for item in proto.graph.input] == ["input"]
    assert [item.name for item in proto.graph.output] == ["same", "fixed", "negative", "again"]
    given = torch.tensor([1.0, 2.0])
    expected = [given, torch.tensor([5.0, 6.0]), -given, -given]
    for one, other in zip(Evaluator(proto)({"input": given}), expected, strict=True):
        torch.testing.assert_close(one, other)


class Unused(torch.nn.Module):
    """`shaped` gives its number of rows alone, and `unused` nothing."""

    def forward(self, x: torch.Tensor, shaped: torch.Tensor, unused: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, torch.ones(shaped.shape[0], 2) + 1


def request_for(model: torch.nn.Module, rows: DimRange) -> BuildRequest:
    dim = Dim("rows", min=2, max=8)
    examples = tuple(torch.ones(3, 4) for _ in range(3))
    traced = torch.export.export(model, examples, dynamic_shapes=tuple({0: dim} for _ in examples))
    program = to_edge(traced).exported_program()
    (symbol,) = program.range_constraints
    signature = program.graph_signature
    bindings = [Binding(name, "float32", (-1, 4), True) for name in signature.user_inputs]
    bindings += [Binding(name, "float32", (-1, width), False) for name, width in zip(("a", "b"), (4, 2), strict=True)]
    bounds = [[[rows, DimRange(4, 4, 4)]] * 3]
    return BuildRequest(program, [{symbol.name: rows}], bindings, bounds, {})


def test_inputs_that_give_nothing_or_only_their_shape_stay_inputs() -> None:
    request = request_for(Unused(), DimRange(2, 3, 8))
    with torch.no_grad():
        model = ir.to_proto(make_onnx_model(request, 20).model)
        engine = TensorRTEngineBuilder("tensorrt_rtx").build(request)
    assert [item.name for item in model.graph.input] == ["x", "shaped", "unused"]
    assert all(name in engine.data for name in (b"shaped", b"unused"))
    x, shaped, unused = (torch.randn(5, 4) for _ in range(3))
    got = Evaluator(model)({"x": x, "shaped": shaped, "unused": unused})
    torch.testing.assert_close(got, [x * 2, torch.full((5, 2), 2.0)])
