"""Tracing a module over the union of its profiles, and what it says when the model accepts less."""

from __future__ import annotations

import pytest
import torch
from export_cases import model_of, rows

from executorch_tensorrt.exporter import export
from executorch_tensorrt.exporter.tracing import trace
from executorch_tensorrt.graphs.shape_env import hints_of


class Adding(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


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
        match=r"does not hold for all of profile 0: got other outputs .* 'x' dim 0 = 1, allowed .* Ne\(x\[0\], 1\);",
    ):
        export(Decoding().eval(), [rows((1, 1, 1), (2, 16, 64))])


def test_trace_refuses_a_path_that_depends_on_values() -> None:
    model = model_of(lambda self, x: x if x.sum() > 0 else -x)
    with pytest.raises(ValueError, match="(?s)got Guard.*; write what depends on the values of tensors with torch"):
        trace(model, [rows((2, 2, 2))], strict=False)


def test_trace_tells_the_data_types_that_the_model_refused() -> None:
    model = model_of(lambda self, ids: torch.nn.functional.embedding(ids, torch.ones(3, 2)))
    with pytest.raises(ValueError, match=r"for inputs float32 \(16, 4\): .*; declare shapes and data types that"):
        trace(model, [rows((2, 16, 64))], strict=False)


def test_trace_refuses_unequal_profile_counts() -> None:
    both = [rows((2, 4, 8), (2, 4, 8)), rows(*[(2, 4, 8)] * 3)]
    with pytest.raises(
        ValueError, match=r"input 1 has another number of optimization profiles .*got 3, allowed 1 or 2"
    ):
        trace(Adding().eval(), both, strict=False)


def test_trace_takes_models_with_any_number_of_arguments() -> None:
    class Sum(torch.nn.Module):
        def forward(self, first: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
            return first + sum(others)

    program = trace(Sum().eval(), [rows((1, 2, 8), (4, 8, 64))] * 3, strict=False)
    x = torch.randn(5, 4)
    torch.testing.assert_close(program.module()(x, x, x), 3 * x)


def test_trace_keeps_the_buffers_of_the_model() -> None:
    """The model is run where a guard excludes sizes, and this one counts how often."""

    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return torch.nn.functional.adaptive_avg_pool1d(x.unsqueeze(1), 1) * self.calls

    model = Counting().eval()
    program = trace(model, [rows((1, 2, 8))], strict=False)
    (domain,) = program.range_constraints.values()
    assert (domain.lower, domain.upper) == (1, 8)
    assert model.calls.item() == 0


def test_trace_takes_dims_of_one_name_that_others_must_equal() -> None:
    shared = rows((2, 4, 8), shared_dims={0: "n"})
    first, second = shapes_of(trace(Adding().eval(), [shared, rows((2, 4, 8))], strict=False))
    assert first == second


def test_trace_takes_the_largest_dims() -> None:
    program = trace(torch.nn.ReLU().eval(), [rows((1, 1, 1), (2, 8, 2**31 - 1))], strict=False)
    (domain,) = program.range_constraints.values()
    assert (domain.lower, domain.upper) == (1, 2**31 - 1)


def test_trace_takes_dims_of_one_name_from_1() -> None:
    """A copy with other strides makes torch ask whether the rows are one."""

    class Copying(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, y], 1).transpose(0, 1).contiguous()

    both = [rows((1, 1, 1), (2, 4, 8), shared_dims={0: "n"})] * 2
    program = trace(Copying().eval(), both, strict=False)
    first, second = shapes_of(program)
    (domain,) = program.range_constraints.values()
    assert first == second
    assert (domain.lower, domain.upper) == (1, 8)


def test_trace_gives_back_sizes_where_another_path_gives_the_same() -> None:
    class Doubling(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[0] > 8 else x + x

    program = trace(Doubling().eval(), [rows((2, 4, 8), (9, 16, 64))], strict=False)
    (domain,) = program.range_constraints.values()
    assert (domain.lower, domain.upper) == (2, 64)


def test_trace_uses_the_largest_opt() -> None:
    """A small size may make a size that the model derives from it 1, which torch would take for the model's."""
    program = trace(torch.nn.ReLU().eval(), [rows((2, 2, 3), (4, 32, 64), (4, 8, 16))], strict=False)
    hints = hints_of(program)
    assert [hints[symbol] for symbol in program.range_constraints] == [32]
