"""Which operator, module and line of the model each node of an engine comes from."""

from __future__ import annotations

import itertools
import re
from typing import Any

import models
import torch
from models import profiles

from executorch_tensorrt import Input, export
from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.graphs.sources import operator_counts
from executorch_tensorrt.profiling import capture
from executorch_tensorrt.program import read_program


def record(buffer: bytes) -> dict[str, Any]:
    blob = bytes(read_program(buffer).methods[0].delegates[0].blob)
    return unpack_metadata(blob)["executorch_tensorrt"]


class _Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4))
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(self.norm(self.inner(x)), 1)


class _Sizes(torch.nn.Module):
    """An operator that computes with a size is none of the engine's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0] * 2) * 2


def test_sources_name_operator_module_and_line() -> None:
    ours = record(export(_Block().eval(), [Input(profiles=profiles((2, 4, 8), tail=(4,)))]).buffer)
    found = {source["op"]: source for source in ours["sources"].values()}
    assert found["aten.linear.default"]["module"] == "inner.0"
    assert found["aten.layer_norm.default"]["module"] == "norm"
    assert re.fullmatch(r"graphs/test_sources\.py:\d+", found["aten.cumsum.default"]["location"])


def test_operators_are_counted_with_and_without_a_source() -> None:
    assert record(models.two_inputs().buffer)["operators"] == {"total": 3, "with_source": 3}
    shape = {"x": {0: torch.export.Dim("rows", max=8)}}
    graph = torch.export.export(_Sizes(), (torch.zeros(4, 2),), dynamic_shapes=shape).graph
    assert operator_counts(graph) == {"total": 2, "with_source": 0}
    for node in graph.nodes:
        if "mul" in str(node.target):
            node.meta["debug_handle"] = 7
    assert operator_counts(graph) == {"total": 2, "with_source": 1}


def test_sources_hold_no_absolute_path() -> None:
    assert str(models.__file__).rpartition("/")[0].encode() not in models.mixed().buffer


def test_layers_of_every_profile_lead_to_sources() -> None:
    ours = record(models.two_inputs().buffer)
    assert len(ours["layers"]) == len(ours["profiles"]) == 2
    for layers in ours["layers"]:
        ops = [ours["sources"][str(handle)]["op"] for handles in layers.values() for handle in handles]
        assert ops == ["aten.mul.Tensor", "aten.sum.default", "aten.to.dtype"]


def test_layer_of_a_nested_delegate_leads_to_all_its_operators() -> None:
    ours = record(models.rows().buffer)
    (handles,) = ours["layers"][0].values()
    assert [ours["sources"][str(handle)]["op"] for handle in handles] == [
        "aten.linear.default",
        "aten.relu.default",
        "aten.linear.default",
    ]


class _Attention(torch.nn.Module):
    """Its handles collide with instruction numbers, which emitting puts in their place."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.project = torch.nn.Linear(8, 24)
        self.out = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(self.norm(x)).chunk(3, -1)
        return self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v)) + x


def test_layers_of_dynamic_profiles_lead_to_the_operators_they_run() -> None:
    ranges = profiles((1, 1, 1), (2, 4, 8), head=(1,), tail=(8,))
    buffer = export(_Attention().eval(), [Input(profiles=ranges)]).buffer
    ours = record(buffer)
    for layers in ours["layers"]:
        ops = [ours["sources"][str(handle)]["op"] for handles in layers.values() for handle in handles]
        runs = [(op, len(list(same))) for op, same in itertools.groupby(ops)]
        assert [op for op, _ in runs] == [
            "aten.layer_norm.default",
            "aten.linear.default",
            "aten.chunk.default",
            "aten.scaled_dot_product_attention.default",
            "aten.linear.default",
            "aten.add.Tensor",
        ], "layers come in the model's order"
        assert runs[3][1] > 3, "attention is decomposed into several layers"


def test_layer_links_name_kernels_of_their_operators() -> None:
    """An engine's own events say which kernel an instruction runs, independently of the links."""
    session = capture(
        export(_Attention().eval(), [Input(profiles=profiles((2, 4, 8), head=(1,), tail=(8,)))]).buffer,
        (torch.randn(1, 5, 8),),
        runs=1,
    )
    engine = session.delegates[0].engine
    assert engine is not None
    for event in session.runs[0].events:
        if event.kind == "layer" and event.name.startswith(("where", "eq.", "any.", "logical_not")):
            handles = engine.layer_handles[0][str(event.layer_instruction)]
            assert [engine.sources[str(h)].op for h in handles] == ["aten.scaled_dot_product_attention.default"]
