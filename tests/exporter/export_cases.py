"""Exporting small models and running what came out, beside eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from executorch_tensorrt import Input, Module, OptimizationProfileGuard
from executorch_tensorrt.exporter import ExportedEngineProgram, export

Shape = tuple[int, ...]
Make = Callable[[Sequence[Shape]], list[torch.Tensor]]


def ranges(*profiles: tuple[Shape, Shape, Shape]) -> list[dict[str, Shape]]:
    """Optimization profiles, each written (min, opt, max)."""
    return [dict(zip(("min_shape", "opt_shape", "max_shape"), profile, strict=True)) for profile in profiles]


def normal(shapes: Sequence[Shape]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def assert_matches_eager(
    model: torch.nn.Module,
    buffer: bytes,
    cases: Sequence[Sequence[Sequence[Shape]]],
    make: Make = normal,
) -> None:
    """Run a program with the shapes of each profile, pinned, and compare with the model."""
    module = Module(buffer)
    for profile, shapes in enumerate(cases):
        for shape in shapes:
            arguments = make(shape)
            with torch.no_grad():
                expected = model(*arguments)
            expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
            with OptimizationProfileGuard(profile):
                got = module.forward(*arguments)
            got = got if isinstance(got, (tuple, list)) else [got]
            assert len(got) == len(expected)
            for one, other in zip(got, expected, strict=True):
                torch.testing.assert_close(torch.as_tensor(one), other, rtol=1e-4, atol=1e-5)


def export_and_compare(
    model: torch.nn.Module,
    inputs: Sequence[Input],
    cases: Sequence[Sequence[Sequence[Shape]]],
    make: Make = normal,
    **options: Any,
) -> ExportedEngineProgram:
    """Export, and compare with eager in every profile; `cases` holds for each profile a list of input shapes."""
    torch.manual_seed(0)
    program = export(model.eval(), inputs, **options)
    assert_matches_eager(model, program.buffer, cases, make)
    return program
