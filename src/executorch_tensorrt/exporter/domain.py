"""Whether a traced program accepts all that the profiles declare."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import sympy
import torch
from torch.export import ExportedProgram

from executorch_tensorrt.exporter.binding import input_label, tensor_inputs
from executorch_tensorrt.exporter.shapes import symbols_of, tensor_exprs
from executorch_tensorrt.inputs import Input, profile_of

Place = tuple[int, int]
"""A dim of an input: position among the declared inputs, and axis."""


def check_domain(
    program: ExportedProgram, items: Sequence[Input], agrees: Callable[[Mapping[Place, int]], bool]
) -> None:
    """See that tracing neither fixed nor narrowed a dim, and that the program holds where a guard says otherwise.

    Many guards are harmless, above all those against a size of 1 where only strides would differ. So where a guard
    excludes sizes that a profile allows, `agrees` decides, which compares the program with the model at these sizes.

    Raises:
        ValueError: the exported program accepts less than the profiles declare.
    """
    guards = _guards(program)
    nodes = tensor_inputs(program)
    for position, (node, item) in enumerate(zip(nodes, items, strict=True)):
        for dim, expr in enumerate(tensor_exprs(node.meta["val"])):
            low, high = item.union.min[dim], item.union.max[dim]
            label = f"{input_label(position, node.name)} dim {dim}"
            if low < high and not symbols_of(expr):
                raise ValueError(
                    f"{label} became fixed when the model was traced: got {expr}, wanted {low}..{high}; the model's "
                    "code depends on its value: declare it static, or change the model."
                )
            domain = program.range_constraints.get(expr) if isinstance(expr, sympy.Symbol) else None
            if low < high and domain is not None and (domain.lower > low or domain.upper < high):
                raise ValueError(
                    f"{label} was narrowed when the model was traced: got {domain.lower}..{domain.upper}, wanted "
                    f"{low}..{high}; the model accepts no more{_because(guards, expr)}: narrow the profiles, or change "
                    "the model."
                )
    _check_guards(guards, nodes, items, agrees)


def _check_guards(
    guards: Sequence[sympy.Basic],
    nodes: Sequence[torch.fx.Node],
    items: Sequence[Input],
    agrees: Callable[[Mapping[Place, int]], bool],
) -> None:
    places: dict[sympy.Symbol, Place] = {}
    for position, node in enumerate(nodes):
        for dim, expr in enumerate(tensor_exprs(node.meta["val"])):
            if isinstance(expr, sympy.Symbol):
                places.setdefault(expr, (position, dim))
    known: dict[tuple[tuple[Place, int], ...], bool] = {}
    for guard in guards:
        symbols = symbols_of(cast(sympy.Expr, guard))
        if not symbols or not all(symbol in places for symbol in symbols):
            continue
        for index in range(max((len(item.profiles) for item in items), default=1)):
            spans = [_span(items, places[symbol], index) for symbol in symbols]
            excluded = [p for p in _points(spans) if guard.subs(dict(zip(symbols, p, strict=True))) == sympy.false]
            for point in _few(excluded):
                sizes = {places[symbol]: size for symbol, size in zip(symbols, point, strict=True)}
                key = tuple(sizes.items())
                if key not in known:
                    known[key] = agrees(sizes)
                if not known[key]:
                    raise _path_error(guard, index, sizes, nodes)


def _few(points: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
    """The ends and the middle of many."""
    return points if len(points) <= 3 else (points[0], points[len(points) // 2], points[-1])


def _path_error(
    guard: sympy.Basic, index: int, sizes: Mapping[Place, int], nodes: Sequence[torch.fx.Node]
) -> ValueError:
    where = ", ".join(
        f"{input_label(position, nodes[position].name)} dim {dim} = {size}" for (position, dim), size in sizes.items()
    )
    return ValueError(
        f"the traced model does not hold for all of profile {index}: got other outputs than the model's for {where}, "
        f"allowed sizes with {guard}; the model's code takes another path there: narrow the profiles, or change the "
        "model."
    )


def _span(items: Sequence[Input], place: tuple[int, int], index: int) -> tuple[int, int]:
    entry = profile_of(items[place[0]], index)
    return entry.min[place[1]], entry.max[place[1]]


def _points(spans: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Sizes to try: all of a single range up to a bound, else ends, neighbours and middles."""
    if len(spans) == 1 and spans[0][1] - spans[0][0] <= 4096:
        return [(size,) for size in range(spans[0][0], spans[0][1] + 1)]
    points: list[tuple[int, ...]] = [()]
    for low, high in spans[:4]:
        sizes = sorted({low, min(low + 1, high), (low + high) // 2, max(high - 1, low), high})
        points = [(*point, size) for point in points for size in sizes]
    return points if len(spans) <= 4 else []


def _guards(program: ExportedProgram) -> list[sympy.Basic]:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            env = getattr(getattr(value, "fake_mode", None), "shape_env", None)
            if env is not None:
                return [env.replace(guard.expr) for guard in env.guards]
    return []


def _because(guards: Sequence[sympy.Basic], expr: sympy.Expr) -> str:
    related = [str(guard) for guard in guards if set(symbols_of(expr)) & guard.free_symbols]
    return f" ({', '.join(related[:3])})" if related else ""
