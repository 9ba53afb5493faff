"""Exporting small models and running what came out, beside eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import MethodType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from executorch_tensorrt import Input, Module, OptimizationProfileGuard
from executorch_tensorrt.exporter import ExportedEngineProgram, export
from executorch_tensorrt.exporter.examples import Inputs, flatten_inputs
from executorch_tensorrt.exporter.tracing import in_signature_order
from executorch_tensorrt.inputs import profile_of

Shape = tuple[int, ...]
Make = Callable[[Sequence[Shape]], Any]
"""From the shapes of a method's tensors to the model's arguments: a sequence, or a dict of names."""

_TOLERANCES = {torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2)}


def ranges(*profiles: tuple[Shape, Shape, Shape]) -> list[dict[str, Shape]]:
    """Optimization profiles, each written (min, opt, max)."""
    return [dict(zip(("min_shape", "opt_shape", "max_shape"), profile, strict=True)) for profile in profiles]


def rows(*spans: tuple[int, int, int], tail: Shape = (4,), **options: Any) -> Input:
    """An input whose dim 0 has a range, written (min, opt, max), in each optimization profile."""
    return Input(profiles=ranges(*(tuple((size, *tail) for size in span) for span in spans)), **options)  # type: ignore[arg-type]


def model_of(forward: Callable[..., Any], **children: torch.nn.Module | torch.Tensor) -> torch.nn.Module:
    """A model whose `forward` is a function of itself and its inputs."""
    model = torch.nn.Module()
    for name, child in children.items():
        model.register_buffer(name, child) if isinstance(child, torch.Tensor) else model.add_module(name, child)
    model.forward = MethodType(forward, model)
    return model.eval()


def normal(shapes: Sequence[Shape]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def typed(inputs: Inputs) -> Make:
    """Arguments in the structure and of the data types that are declared."""
    leaves, spec = flatten_inputs(inputs)

    def make(shapes: Sequence[Shape]) -> Any:
        values = iter(normal(shapes))
        return pytree.tree_unflatten(
            [_cast(next(values), leaf.dtype) if isinstance(leaf, Input) else leaf for leaf in leaves], spec
        )

    return make


def _cast(value: torch.Tensor, dtype: str) -> torch.Tensor:
    kind: torch.dtype = getattr(torch, dtype)
    if kind == torch.bool:
        return value > 0
    return value.to(kind) if kind.is_floating_point else (value.abs() * 4).to(kind)


def corners(inputs: Inputs) -> list[list[list[Shape]]]:
    """For each optimization profile the shapes of all inputs at min, opt, max and in between."""
    items = [leaf for leaf in flatten_inputs(inputs)[0] if isinstance(leaf, Input)]
    cases: list[list[list[Shape]]] = []
    for index in range(max((len(item.profiles) for item in items), default=1)):
        ends = [profile_of(item, index) for item in items]
        between = [tuple((low + high) // 2 for low, high in zip(span.min, span.max, strict=True)) for span in ends]
        cases.append([[span.min for span in ends], [span.opt for span in ends], [span.max for span in ends], between])
    return cases


def assert_matches_eager(
    model: torch.nn.Module,
    buffer: bytes,
    cases: Sequence[Sequence[Sequence[Shape]]],
    make: Make = normal,
) -> None:
    """Run a program with the shapes of each profile, pinned, by automatic selection and, for the first, by default."""
    module = Module(buffer)
    for profile, shapes in enumerate(cases):
        requests = [OptimizationProfileGuard(profile), OptimizationProfileGuard.auto()]
        for shape in shapes:
            arguments = in_signature_order(model, make(shape))
            given = pytree.tree_leaves(arguments)
            with torch.no_grad():
                expected = model(**arguments) if isinstance(arguments, dict) else model(*arguments)
            for request in [*requests, *([nullcontext()] if profile == 0 else [])]:
                with request:
                    got = module.forward(*given)
                _assert_close(pytree.tree_leaves(got), pytree.tree_leaves(expected))


def _assert_close(got: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        if other is None:
            assert one is None
            continue
        wanted = torch.as_tensor(other)
        rtol, atol = _TOLERANCES.get(wanted.dtype, (1e-4, 1e-5))
        torch.testing.assert_close(torch.as_tensor(one), wanted, rtol=rtol, atol=atol)


def export_and_compare(
    model: torch.nn.Module,
    inputs: Inputs,
    cases: Sequence[Sequence[Sequence[Shape]]] | None = None,
    make: Make | None = None,
    **options: Any,
) -> ExportedEngineProgram:
    """Export, and compare with eager in every profile.

    Args:
        model: the module.
        inputs: its inputs, as for `export`.
        cases: for each profile a list of input shapes; `corners` of the inputs by default.
        make: makes arguments of shapes; `typed` ones by default.
        options: for `export`.
    """
    torch.manual_seed(0)
    program = export(model.eval(), inputs, **options)
    assert_matches_eager(model, program.buffer, cases or corners(inputs), make or typed(inputs))
    return program
