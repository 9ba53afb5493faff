"""The ONNX models that TensorRT engines are built from give PyTorch's numbers in every optimization profile."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as functional
from engines.onnx_cases import assert_onnx_matches, export_rtx
from export_cases import model_of, rows

from executorch_tensorrt import Input
from executorch_tensorrt.engines.tensorrt.onnx_model import make_onnx_model

Case = tuple[torch.nn.Module, list[Input]]

SPANS = (1, 2, 4), (5, 8, 12)
X = rows(*SPANS, name="x")
"""float32 [rows, 4], 1..4 rows and 5..12."""


class Block(torch.nn.Module):
    """A transformer block: float32 [rows, 8] to the same."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(8), torch.nn.RMSNorm(8)
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).reshape(-1, 3, 2, 4).permute(1, 2, 0, 3).unsqueeze(1).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.permute(2, 0, 1, 3).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def _masked_attention(self: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The first row may look at nothing: PyTorch gives zeros for it."""
    allowed = torch.ones(x.shape[0], x.shape[0], dtype=torch.bool).tril(-1)
    return functional.scaled_dot_product_attention(x, x, x, attn_mask=allowed)


def _image(self: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    small = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2)
    large = functional.interpolate(small, scale_factor=2, mode="bilinear")
    return functional.adaptive_avg_pool2d(functional.pad(large, (1, 1, 1, 1), mode="reflect"), 1).flatten(1)


def _sizes(self: torch.nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    rows = x.shape[0]
    positions = torch.arange(rows).unsqueeze(1)
    return x.reshape(-1, 2) * (rows // 2 + 1), torch.cat([x, x + positions], 0)[rows // 2 :], x[:, :0] * 2, x.sum()


def _types(
    self: torch.nn.Module, ids: torch.Tensor, keep: torch.Tensor, half: torch.Tensor, raw: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    found = self.table(ids % 8) * keep.unsqueeze(-1)
    return found, (ids * 2).to(torch.int32), keep.logical_not(), half * 0.5, raw.to(torch.float32) / 255


CASES: dict[str, Case] = {
    "block": (Block(), [rows(*SPANS, tail=(8,), name="x")]),
    "mask": (model_of(_masked_attention), [X]),
    "image": (
        model_of(_image, conv=torch.nn.Conv2d(3, 4, 3, padding=1), norm=torch.nn.BatchNorm2d(4)),
        [rows(*SPANS, tail=(3, 8, 8), name="x")],
    ),
    "sizes": (model_of(_sizes), [X]),
    "types": (
        model_of(_types, table=torch.nn.Embedding(8, 4)),
        [
            rows(*SPANS, tail=(), dtype=dtype, name=name, shared_dims={0: "rows"})
            for name, dtype in (("ids", "int64"), ("keep", "bool"), ("half", "float16"), ("raw", "uint8"))
        ],
    ),
    "scalar": (model_of(lambda self, x, scale: x * scale), [X, Input(shape=(), name="scale")]),
    "decomposed": (model_of(lambda self, x: functional.logsigmoid(x) + x.var(1, keepdim=True)), [X]),
    "views": (model_of(lambda self, x: (x.view(-1, 2, 2), x.unbind(1)[2], x[None, :, None].squeeze((0, 2)))), [X]),
    "constant": (model_of(lambda self, x: (torch.ones(3) * 2, x + 1)), [X]),
}


@pytest.mark.parametrize("name", CASES)
def test_onnx_model_matches_eager_in_every_profile(name: str) -> None:
    model, inputs = CASES[name]
    program, built = export_rtx(model, inputs)
    assert not program.left_outside
    (only,) = built
    assert_onnx_matches(model, inputs, only.model)
    bindings = [item.name for item in only.request.bindings]
    assert [item.name for item in (*only.model.graph.input, *only.model.graph.output)] == bindings


def test_onnx_model_keeps_attention_whole_without_a_mask() -> None:
    _, (block,) = export_rtx(*CASES["block"])
    operators = [node.op_type for node in block.model.graph.node]
    assert operators.count("Softmax") == 1
    assert "ReduceMax" not in operators  # of which PyTorch's own decomposition finds the rows that allow nothing


@pytest.mark.parametrize("name", ["block", "decomposed"])
def test_onnx_model_ties_its_nodes_to_operators(name: str) -> None:
    _, (built,) = export_rtx(*CASES[name])
    operators = {node.name for node in built.request.program.graph.nodes if node.op == "call_function"}
    assert set(built.origins) <= {node.name for node in built.model.graph.node}
    assert len(built.origins) >= 0.9 * len(built.model.graph.node)
    assert set(built.origins.values()) <= operators
    (output,) = [node for node in built.model.graph.node if built.model.graph.output[0].name in node.output]
    assert built.origins[output.name] == {"block": "aten_add_tensor_1", "decomposed": "aten_add_tensor"}[name]


def test_onnx_model_leaves_the_partition_as_it_was() -> None:
    model, inputs = CASES["sizes"]
    _, (built,) = export_rtx(model, inputs)
    program = built.request.program
    before = str(program.graph), [sorted(node.meta) for node in program.graph.nodes]
    make_onnx_model(built.request, 20, torch.float16)
    assert (str(program.graph), [sorted(node.meta) for node in program.graph.nodes]) == before
