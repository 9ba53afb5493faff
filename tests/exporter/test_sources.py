"""Which operator, module and line of the model each node of an engine comes from."""

from __future__ import annotations

import re
from typing import Any

import models
import torch
from models import profiles

from executorch_tensorrt import Input, export
from executorch_tensorrt.exporter.blob import unpack_metadata
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


def test_sources_name_operator_module_and_line() -> None:
    ours = record(export(_Block().eval(), [Input(profiles=profiles((2, 4, 8), tail=(4,)))]).buffer)
    found = {source["op"]: source for source in ours["sources"].values()}
    assert found["aten.linear.default"]["module"] == "inner.0"
    assert found["aten.layer_norm.default"]["module"] == "norm"
    assert re.fullmatch(r"exporter/test_sources\.py:\d+", found["aten.cumsum.default"]["location"])


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
