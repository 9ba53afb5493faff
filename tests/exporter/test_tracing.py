"""Tracing a module over the union of its profiles, and what it says when the model accepts less."""

from __future__ import annotations

import pytest
import torch
from export_cases import ranges

from executorch_tensorrt import Input
from executorch_tensorrt.exporter import export
from executorch_tensorrt.exporter.tracing import trace


class Adding(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def rows(*spans: tuple[int, int, int], **options: object) -> Input:
    return Input(profiles=ranges(*(((low, 4), (opt, 4), (high, 4)) for low, opt, high in spans)), **options)  # type: ignore[arg-type]


def shapes_of(program: torch.export.ExportedProgram) -> list[list[str]]:
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    return [[str(dim) for dim in value.shape] for value in values]


def test_trace_covers_the_union_of_profiles() -> None:
    program = trace(torch.nn.ReLU().eval(), [rows((1, 1, 1), (2, 8, 64))], strict=False)
    (domain,) = program.range_constraints.values()
    assert (domain.lower, domain.upper) == (1, 64)


def test_trace_never_uses_a_boundary_shape() -> None:
    seen: list[int] = []

    class Recording(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.shape[0].node.hint)  # type: ignore[attr-defined]
            return x * 2

    for spans in (((1, 1, 1), (1, 1, 64)), ((1, 64, 64),), ((2, 2, 4),)):
        trace(Recording().eval(), [rows(*spans)], strict=False)
        assert max(high for _, _, high in spans) > seen[-1] > min(low for low, _, _ in spans)


def test_trace_finds_dims_that_the_model_needs_equal() -> None:
    program = trace(Adding().eval(), [rows((2, 4, 8)), rows((2, 4, 8))], strict=False)
    first, second = shapes_of(program)
    assert first == second


def test_trace_keeps_dims_apart_that_the_model_does_not_relate() -> None:
    class Pair(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, y * 2

    both = [rows((2, 4, 8)), rows((2, 4, 8))]
    first, second = shapes_of(trace(Pair().eval(), both, strict=False))
    assert first != second
    shared = [rows((2, 4, 8), shared_dims={0: "n"}), rows((2, 4, 8), shared_dims={0: "n"})]
    first, second = shapes_of(trace(Pair().eval(), shared, strict=False))
    assert first == second


def test_trace_asks_for_shared_dims_when_sizes_do_not_fit() -> None:
    both = [rows((2, 4, 8)), rows((2, 4, 9))]
    with pytest.raises(
        ValueError,
        match=r"can't be traced: got .* for inputs of shape \(\d, 4\), \(\d, 4\): .*one name in shared_dims",
    ):
        trace(Adding().eval(), both, strict=False)


def test_trace_refuses_shared_dims_declared_otherwise() -> None:
    both = [rows((2, 4, 8), shared_dims={0: "n"}), rows((2, 4, 9), shared_dims={0: "n"})]
    message = r"input 1 '' dim 0 shares 'n' with input 0 dim 0, declared otherwise: got 2..9 \(opt 4\), allowed 2..8"
    with pytest.raises(ValueError, match=message):
        trace(Adding().eval(), both, strict=False)


def test_trace_refuses_a_dim_that_became_fixed() -> None:
    class Fixing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * int(x.shape[0])

    with pytest.raises(ValueError, match=r"input 0 'x' dim 0 became fixed .*: got 16, wanted 2..64"):
        trace(Fixing().eval(), [rows((2, 16, 64))], strict=False)


def test_trace_refuses_a_dim_that_became_narrower() -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[0] > 8 else x

    with pytest.raises(ValueError, match=r"input 0 'x' dim 0 was narrowed .*: got 9..64, wanted 2..64; .*> 8"):
        trace(Branching().eval(), [rows((2, 16, 64))], strict=False)


def test_trace_refuses_a_path_that_one_profile_does_not_take() -> None:
    class Decoding(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[0] == 1 else x

    with pytest.raises(
        ValueError,
        match=r"does not hold for all of profile 0: got other outputs .* 'x' dim 0 = 1, allowed sizes with Ne",
    ):
        export(Decoding().eval(), [rows((1, 1, 1), (2, 16, 64))])


def test_trace_refuses_unequal_profile_counts() -> None:
    both = [rows((2, 4, 8), (2, 4, 8)), rows(*[(2, 4, 8)] * 3)]
    with pytest.raises(
        ValueError, match=r"input 1 '' has another number of optimization profiles .*got 3, allowed 1 or 2"
    ):
        trace(Adding().eval(), both, strict=False)


def test_trace_takes_models_with_any_number_of_arguments() -> None:
    class Sum(torch.nn.Module):
        def forward(self, first: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
            return first + sum(others)

    program = trace(Sum().eval(), [rows((1, 2, 8), (4, 8, 64))] * 3, strict=False)
    x = torch.randn(5, 4)
    torch.testing.assert_close(program.module()(x, x, x), 3 * x)
