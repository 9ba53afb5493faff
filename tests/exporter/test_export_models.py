"""export(): layers of real models match eager PyTorch in every optimization profile, whole and split into engines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from export_cases import export_and_compare, ranges
from torch.nn import functional

from executorch_tensorrt import Input, Module
from executorch_tensorrt.exporter import export


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.project = torch.nn.Linear(16, 48)
        self.out = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unsqueeze(1) for part in self.project(self.norm(x)).chunk(3, -1))
        return self.out(functional.scaled_dot_product_attention(q, k, v).squeeze(1)) + x


BATCH_AND_SEQUENCE = ranges(((1, 1, 16), (1, 1, 16), (4, 1, 16)), ((1, 2, 16), (2, 8, 16), (4, 32, 16)))


BATCH_AND_SEQUENCE_CASES = [[[(1, 1, 16)], [(3, 1, 16)], [(4, 1, 16)]], [[(1, 2, 16)], [(4, 32, 16)], [(3, 7, 16)]]]


@pytest.mark.parametrize("outside", [(), ("aten.scaled_dot_product_attention",)], ids=["whole", "split"])
def test_export_matches_eager_batch_and_sequence(outside: Sequence[str]) -> None:
    inputs = [Input(profiles=BATCH_AND_SEQUENCE)]
    program = export_and_compare(Attention(), inputs, BATCH_AND_SEQUENCE_CASES, torch_executed_ops=outside)
    assert len(program.delegates) == 1 + len(outside)
    assert len({delegate["signature"] for delegate in program.delegates}) == 1


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.pool = torch.nn.MaxPool2d(2)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, groups=8, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.norm(self.stem(x))))
        return self.head(functional.hardswish(self.depthwise(x)).mean((2, 3)))


@pytest.mark.parametrize("outside", [(), ("aten.max_pool2d",)], ids=["whole", "split"])
def test_export_matches_eager_convolutions(outside: Sequence[str]) -> None:
    images = ranges(((1, 3, 16, 16),) * 3, ((2, 3, 16, 16), (4, 3, 32, 32), (8, 3, 64, 64)))
    cases = [[[(1, 3, 16, 16)]], [[(2, 3, 16, 16)], [(8, 3, 64, 64)], [(3, 3, 24, 40)]]]
    export_and_compare(Convolution(), [Input(profiles=images)], cases, torch_executed_ops=outside)


def test_export_matches_eager_tied_embedding() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(100, 16)
            self.head = torch.nn.Linear(16, 100)
            self.head.weight = self.embed.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(ids))

    ids = Input(profiles=ranges(((1, 1),) * 3, ((1, 2), (1, 8), (1, 64))), dtype="int64")
    export_and_compare(
        Tied(), [ids], [[[(1, 1)]], [[(1, 2)], [(1, 64)]]], lambda shapes: [torch.arange(shapes[0][1]).reshape(1, -1)]
    )


def test_export_matches_eager_sizes_that_do_not_follow_from_the_partitions_inputs() -> None:
    class Strided(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(1, 4, 3, stride=2, padding=1)
            self.second = torch.nn.Conv2d(4, 4, 3, stride=2, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(torch.relu(self.first(x)))

    images = ranges(((1, 1, 16, 16),) * 3, ((2, 1, 16, 16), (4, 1, 32, 32), (8, 1, 64, 64)))
    cases = [[[(1, 1, 16, 16)]], [[(2, 1, 16, 16)], [(8, 1, 64, 64)], [(3, 1, 25, 41)]]]
    program = export_and_compare(Strided(), [Input(profiles=images)], cases, torch_executed_ops=["aten.relu"])
    assert [delegate["inputs"] for delegate in program.delegates] == [["x"], ["x", "aten_relu_default"]]


@pytest.mark.parametrize("outside", [(), ("aten.tanh",)], ids=["whole", "split"])
def test_export_matches_eager_channels_last(outside: Sequence[str]) -> None:
    class ChannelsLast(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.tanh(self.conv(x.to(memory_format=torch.channels_last)))
            return self.head(x.mean((2, 3)))

    images = ranges(((1, 3, 8, 8),) * 3, ((2, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)))
    cases = [[[(1, 3, 8, 8)]], [[(2, 3, 8, 8)], [(4, 3, 8, 8)]]]
    program = export_and_compare(ChannelsLast(), [Input(profiles=images)], cases, torch_executed_ops=outside)
    assert bool(program.left_outside) == bool(outside)
    assert program.delegates


def test_export_plans_for_batches_that_convolutions_ask_about() -> None:
    """torch's fake convolution compares the batch with 16, and would take the answer for a bound."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3)).eval()
    spans = (((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)), ((5, 3, 8, 8), (20, 3, 8, 8), (32, 3, 8, 8)))
    module = Module(export(net, [Input(profiles=ranges(*spans))]).buffer, optimization_profile="auto")
    for batch in (1, 4, 5, 15, 16, 32):
        x = torch.randn(batch, 3, 8, 8)
        with torch.no_grad():
            torch.testing.assert_close(module.forward(x)[0], net(x), rtol=1e-4, atol=1e-5)


def test_export_ends_where_an_operator_of_several_outputs_has_another_layout() -> None:
    class Pooled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pooled = torch.nn.functional.max_pool2d(x.to(memory_format=torch.channels_last), 2)
            return torch.tanh(pooled).contiguous() * 2

    program = export_and_compare(Pooled().eval(), [Input((1, 3, 8, 8))], torch_executed_ops=["aten.tanh"])
    assert program.left_outside["aten_max_pool2d_with_indices_default"] == "engines exchange row-major tensors only"
