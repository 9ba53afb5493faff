"""Matching declared inputs with an exported program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from export_cases import ranges
from torch.export import Dim, ExportedProgram

from executorch_tensorrt import Input
from executorch_tensorrt.exporter.binding import bind_inputs
from executorch_tensorrt.graphs.shapes import DimRange


class Two(torch.nn.Module):
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return ids * mask


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    """ids and mask int64 [1, S], S from 2 to 64."""
    size = Dim("s", min=2, max=64)
    example = torch.ones(1, 5, dtype=torch.int64)
    return torch.export.export(Two(), (example, example), dynamic_shapes=({1: size}, {1: size}))


def row(*spans: tuple[int, int, int], **options: Any) -> Input:
    profiles = ranges(*(((1, low), (1, opt), (1, high)) for low, opt, high in spans))
    return Input(profiles=profiles, **{"dtype": "int64", **options})


def test_bind_inputs_gives_each_symbol_its_ranges(program: ExportedProgram) -> None:
    item = row((2, 4, 8), (9, 16, 64))
    table = bind_inputs(program, [item, item])
    assert [list(profile.values()) for profile in table.profiles] == [[DimRange(2, 4, 8)], [DimRange(9, 16, 64)]]
    assert table.signature == "ids[1]=2:4:8|9:16:64"


def test_bind_inputs_takes_names(program: ExportedProgram) -> None:
    item = row((2, 4, 8))
    assert bind_inputs(program, {"mask": item, "ids": item}) == bind_inputs(program, [item, item])


def test_bind_inputs_takes_the_programs_own_range(program: ExportedProgram) -> None:
    assert bind_inputs(program, None).signature == "ids[1]=2:5:64"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([row((2, 4, 8))], r"inputs has the wrong length: got 1, allowed 2 \(ids, mask\)"),
        ({"ids": row((2, 4, 8))}, r"inputs do not name the program's inputs: got ids, allowed exactly ids, mask"),
        (
            [row((2, 4, 8), dtype="int32"), row((2, 4, 8))],
            r"input 0 'ids' has another dtype than the program: got int32, allowed int64",
        ),
        (
            [Input((4,), dtype="int64"), row((2, 4, 8))],
            r"input 0 'ids' has another rank than the program: got shapes of rank 1, allowed rank 2",
        ),
        (
            [Input((2, 4), dtype="int64"), row((2, 4, 8))],
            r"input 0 'ids' dim 0 is fixed in the exported program: got 2..2 in profile 0, allowed 1",
        ),
        (
            [row((2, 4, 8)), row((2, 4, 9))],
            r"input 1 'mask' dim 1 is the same dim as input 0 'ids' .* got 2..9 \(opt 4\) .* allowed 2..8",
        ),
        (
            [row((2, 4, 8)), row((2, 5, 8))],
            r"input 1 'mask' dim 1 is the same dim as input 0 'ids' .* got 2..8 \(opt 5\) .* allowed 2..8 \(opt 4\)",
        ),
        (
            [row((2, 4, 8), (2, 4, 80))] * 2,
            r"input 0 'ids' dim 1 leaves the range of the exported program: got 2..80 .* profile 1, allowed 2..64",
        ),
        (
            [row((1, 4, 8))] * 2,
            r"input 0 'ids' dim 1 leaves the range of the exported program: got 1..8 .* profile 0, allowed 2..64",
        ),
        (
            [row((2, 4, 8), shared_dims={1: "s"}), row((2, 4, 9), shared_dims={1: "s"})],
            r"input 1 'mask' dim 1 shares 's' with input 0 'ids' dim 1, declared otherwise: got 2..9 \(opt 4\), allow",
        ),
        ([row(*[(2, 4, 8)] * 2), row(*[(2, 4, 8)] * 3)], r"input 1 'mask' has another number .* input 0 'ids': got 3"),
    ],
)
def test_bind_inputs_refuses_what_does_not_fit(program: ExportedProgram, inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind_inputs(program, inputs)


def test_bind_inputs_refuses_what_is_no_input(program: ExportedProgram) -> None:
    with pytest.raises(TypeError, match=r"input 1 'mask' is not an input declaration: got tuple"):
        bind_inputs(program, [row((2, 4, 8)), (1, 4)])  # type: ignore[list-item]


def test_bind_inputs_refuses_an_unbounded_dim() -> None:
    traced = torch.export.export(torch.nn.ReLU(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("rows")},))
    with pytest.raises(ValueError, match=r"input 0 'input' dim 0 has no upper bound in the exported program"):
        bind_inputs(traced, None)


class Doubling(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x, x[:1]]) + y


@pytest.fixture(scope="module")
def doubling() -> ExportedProgram:
    """x [S] and y [2*S+1], S from 2 to 64."""
    size = Dim("s", min=2, max=64)
    return torch.export.export(
        Doubling(), (torch.ones(5), torch.ones(11)), dynamic_shapes=({0: size}, {0: 2 * size + 1})
    )


def vector(*span: int) -> Input:
    return Input(profiles=ranges(tuple((size,) for size in span)))  # type: ignore[arg-type]


def test_bind_inputs_checks_dims_that_are_formulas(doubling: ExportedProgram) -> None:
    assert bind_inputs(doubling, [vector(2, 4, 8), vector(5, 9, 17)]).signature == "x[0]=2:4:8"
    message = r"input 1 'y' dim 0 is 2\*s\d+ \+ 1 and follows from input 0 'x' dim 0 .*: got 5..18 .* allowed 5..17"
    with pytest.raises(ValueError, match=message):
        bind_inputs(doubling, [vector(2, 4, 8), vector(5, 9, 18)])


def test_bind_inputs_warns_of_equal_profiles(program: ExportedProgram) -> None:
    item = row((2, 4, 8), (9, 16, 64), (2, 4, 8))
    with pytest.warns(
        UserWarning, match=r"profiles 0 and 2 are equal: got .*'ids' dim 1 2..8 \(opt 4\).* never takes 2"
    ):
        bind_inputs(program, [item, item])
