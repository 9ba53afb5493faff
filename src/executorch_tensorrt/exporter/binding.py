"""From declared inputs to the range of every shape symbol of an exported program."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils._sympy.numbers import int_oo

from executorch_tensorrt.graphs.shapes import (
    DimRange,
    ProfileTable,
    as_affine,
    describe_inputs,
    range_of,
    range_text,
    symbols_of,
    tensor_exprs,
)
from executorch_tensorrt.inputs import Input, as_input, profile_count, profile_of


@dataclass(frozen=True)
class _Claim:
    """What a declaration says about one input dim: its range in each profile."""

    label: str
    name: str
    axis: int
    expr: sympy.Expr
    spans: tuple[DimRange, ...]


def bind_inputs(program: ExportedProgram, inputs: Sequence[Input] | Mapping[str, Input] | None) -> ProfileTable:
    """Match declared inputs with a program's user inputs and derive the ranges of its shape symbols.

    Raises:
        ValueError: the declaration does not fit the program. The message names input, dim, profile and values.
    """
    nodes = tensor_inputs(program)
    if inputs is None:
        return _from_program(program, nodes)
    claims, symbols, count = _related_claims(nodes, inputs)
    _check_domain(program, claims, symbols)
    profiles = tuple({symbol.name: spans[index] for symbol, spans in symbols.items()} for index in range(count))
    _warn_of_equal_profiles(profiles, claims)
    return ProfileTable(profiles, _signature(nodes, profiles), describe_inputs(nodes))


def check_relations(program: ExportedProgram, inputs: Sequence[Input]) -> None:
    """See that dims of which one follows from another are declared so.

    Raises:
        ValueError: they are not. The message names both dims, profile and values.
    """
    _related_claims(tensor_inputs(program), inputs)


def _related_claims(
    nodes: Sequence[torch.fx.Node], inputs: Sequence[Input] | Mapping[str, Input]
) -> tuple[list[_Claim], dict[sympy.Symbol, tuple[DimRange, ...]], int]:
    items = _match(nodes, inputs)
    labelled = [(label, item) for label, item, _ in items]
    count = profile_count(labelled)
    check_shared_dims(labelled)
    claims: list[_Claim] = []
    for label, item, node in items:
        _check_type(label, item, node.meta["val"])
        claims.extend(_claims(label, item, node, count))
    symbols = _solve(claims, count)
    _check_derived(claims, symbols)
    return claims, symbols, count


def check_shared_dims(inputs: Sequence[tuple[str, Input]]) -> None:
    """See that dims of one name in `shared_dims` are declared alike in every labelled input.

    Raises:
        ValueError: they are not. The message names both dims and their ranges.
    """
    first: dict[str, tuple[str, list[DimRange]]] = {}
    for label, item in inputs:
        for dim, name in item.shared_dims.items():
            own = [DimRange(*(shape[dim] for shape in entry)) for entry in item.profiles]
            other, theirs = first.setdefault(name, (f"{label} dim {dim}", own))
            count = max(len(own), len(theirs))
            if own * (count // len(own)) != theirs * (count // len(theirs)):
                got, allowed = (", ".join(map(range_text, ranges)) for ranges in (own, theirs))
                raise ValueError(
                    f"{label} dim {dim} shares '{name}' with {other}, declared otherwise: got {got}, allowed "
                    f"{allowed}; declare both alike."
                )


def tensor_inputs(program: ExportedProgram) -> list[torch.fx.Node]:
    """The placeholders of a program's tensor inputs, in order."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    users = [nodes[name] for name in cast("Sequence[object]", program.graph_signature.user_inputs) if name in nodes]
    return [node for node in users if isinstance(node.meta.get("val"), torch.Tensor)]


def input_label(position: int, name: str) -> str:
    """How messages call an input."""
    return f"input {position} '{name}'" if name else f"input {position}"


def _match(
    nodes: Sequence[torch.fx.Node], inputs: Sequence[Input] | Mapping[str, Input]
) -> list[tuple[str, Input, torch.fx.Node]]:
    names = [node.name for node in nodes]
    if isinstance(inputs, Mapping):
        if set(inputs) != set(names):
            raise ValueError(
                f"inputs do not name the program's inputs: got {', '.join(map(str, inputs))}, allowed exactly "
                f"{', '.join(names)}; give one Input for each."
            )
        ordered: list[object] = [inputs[name] for name in names]
    else:
        ordered = list(inputs)
    if len(ordered) != len(nodes):
        raise ValueError(
            f"inputs has the wrong length: got {len(ordered)}, allowed {len(nodes)} ({', '.join(names)}); "
            "give one Input for each tensor input, in order."
        )
    items = [
        as_input(item, input_label(position, node.name))
        for position, (item, node) in enumerate(zip(ordered, nodes, strict=True))
    ]
    labels = [input_label(position, item.name or names[position]) for position, item in enumerate(items)]
    return list(zip(labels, items, nodes, strict=True))


def _check_type(label: str, item: Input, value: torch.Tensor) -> None:
    dtype = str(value.dtype).removeprefix("torch.")
    if item.dtype != dtype:
        raise ValueError(
            f"{label} has another dtype than the program: got {item.dtype}, allowed {dtype}; declare dtype='{dtype}'."
        )
    if item.rank != value.dim():
        raise ValueError(
            f"{label} has another rank than the program: got shapes of rank {item.rank}, allowed rank {value.dim()}; "
            "correct its shapes."
        )


def _claims(label: str, item: Input, node: torch.fx.Node, count: int) -> list[_Claim]:
    claims: list[_Claim] = []
    for axis, expr in enumerate(tensor_exprs(node.meta["val"])):
        ranges = [profile_of(item, index) for index in range(count)]
        spans = tuple(DimRange(entry.min[axis], entry.opt[axis], entry.max[axis]) for entry in ranges)
        if not symbols_of(expr):
            for index, span in enumerate(spans):
                if set(span) != {int(expr)}:
                    raise ValueError(
                        f"{label} dim {axis} is fixed in the exported program: got {range_text(span)} in profile "
                        f"{index}, allowed {int(expr)}; declare {int(expr)}, or export the program with a dynamic dim."
                    )
        claims.append(_Claim(label, node.name, axis, expr, spans))
    return claims


def _solve(claims: Sequence[_Claim], count: int) -> dict[sympy.Symbol, tuple[DimRange, ...]]:
    """Ranges of all symbols: from plain dims first, then from affine ones."""
    found: dict[sympy.Symbol, tuple[DimRange, ...]] = {}
    for claim in claims:
        if isinstance(claim.expr, sympy.Symbol):
            found.setdefault(claim.expr, claim.spans)
    for claim in claims:
        affine = as_affine(claim.expr)
        if affine is not None and affine.symbol not in found:
            found[affine.symbol] = tuple(_invert(claim, index, affine.scale, affine.offset) for index in range(count))
    for claim in claims:
        for symbol in symbols_of(claim.expr):
            if symbol not in found:
                raise ValueError(
                    f"{claim.label} dim {claim.axis} has no range of its own: got the formula {claim.expr}, allowed a "
                    f"formula whose sizes are dims of other inputs; pass a tensor with a dim of size {symbol}."
                )
    return found


def _invert(claim: _Claim, index: int, scale: int, offset: int) -> DimRange:
    span = claim.spans[index]
    for value in span:
        if (value - offset) % scale:
            raise ValueError(
                f"{claim.label} dim {claim.axis} does not fit the exported program: got {range_text(span)} in profile "
                f"{index}, allowed values of {claim.expr}; choose values that the formula takes."
            )
    low, opt, high = ((value - offset) // scale for value in span)
    return DimRange(min(low, high), opt, max(low, high))


def _check_derived(claims: Sequence[_Claim], symbols: Mapping[sympy.Symbol, tuple[DimRange, ...]]) -> None:
    for claim in claims:
        if not symbols_of(claim.expr):
            continue
        for index, span in enumerate(claim.spans):
            derived = range_of(claim.expr, {symbol.name: spans[index] for symbol, spans in symbols.items()})
            plain = isinstance(claim.expr, sympy.Symbol)
            if (span if plain else (span.min, span.max)) == (derived if plain else (derived.min, derived.max)):
                continue
            other = next((item for item in claims if item is not claim and _related(item, claim)), claim)
            relation = "is the same dim as" if claim.expr == other.expr else f"is {claim.expr} and follows from"
            raise ValueError(
                f"{claim.label} dim {claim.axis} {relation} {other.label} dim {other.axis} in the exported program: "
                f"got {range_text(span)} in profile {index}, allowed {range_text(derived)}; declare both alike."
            )


def _related(one: _Claim, other: _Claim) -> bool:
    return not set(symbols_of(one.expr)).isdisjoint(symbols_of(other.expr))


def _check_domain(
    program: ExportedProgram, claims: Sequence[_Claim], symbols: Mapping[sympy.Symbol, tuple[DimRange, ...]]
) -> None:
    # torch's decompositions write 2 for a lower bound of 1; ExecuTorch plans with upper bounds only.
    edge = program.dialect == "EDGE"
    for symbol, spans in symbols.items():
        domain = program.range_constraints.get(symbol)
        if domain is None:
            continue
        lowest = 1 if edge and domain.lower == 2 else domain.lower
        claim = next(item for item in claims if symbol in symbols_of(item.expr))
        for index, span in enumerate(spans):
            if span.min < lowest or span.max > domain.upper:
                raise ValueError(
                    f"{claim.label} dim {claim.axis} leaves the range of the exported program: got {range_text(span)} "
                    f"in profile {index}, allowed {lowest}..{domain.upper}; narrow the profile, or export the "
                    "program with a wider range."
                )


def _warn_of_equal_profiles(profiles: Sequence[Mapping[str, DimRange]], claims: Sequence[_Claim]) -> None:
    for index, profile in enumerate(profiles):
        first = profiles.index(profile)
        if first < index:
            dims = [
                f"{claim.label} dim {claim.axis} {range_text(claim.spans[index])}"
                for claim in claims
                if symbols_of(claim.expr)
            ]
            warnings.warn(
                f"optimization profiles {first} and {index} are equal: got {', '.join(dims) or 'one static shape'} in "
                f"both, allowed different ranges; automatic selection never takes {index}: remove it.",
                stacklevel=2,
            )


def _from_program(program: ExportedProgram, nodes: Sequence[torch.fx.Node]) -> ProfileTable:
    profile: dict[str, DimRange] = {}
    for position, node in enumerate(nodes):
        for axis, dim in enumerate(node.meta["val"].shape):
            for symbol in symbols_of(dim.node.expr) if isinstance(dim, torch.SymInt) else ():
                domain = program.range_constraints.get(symbol)
                if domain is None or domain.upper is int_oo:
                    raise ValueError(
                        f"{input_label(position, node.name)} dim {axis} has no upper bound in the exported program: "
                        f"got {symbol}, allowed a bounded dim; give inputs=[Input(...)], or export with "
                        'torch.export.Dim("name", min=..., max=...).'
                    )
                low, high = int(cast(Any, domain.lower)), int(cast(Any, domain.upper))
                hint = dim.node.shape_env.backed_var_to_val.get(symbol, high)
                profile[symbol.name] = DimRange(low, min(max(int(hint), low), high), high)
    profiles = (profile,)
    return ProfileTable(profiles, _signature(nodes, profiles), describe_inputs(nodes))


def _signature(nodes: Sequence[torch.fx.Node], profiles: Sequence[Mapping[str, DimRange]]) -> str:
    seen: dict[str, str] = {}
    for node in nodes:
        for axis, expr in enumerate(tensor_exprs(node.meta["val"])):
            affine = as_affine(expr)
            if affine is not None and affine.symbol.name not in seen:
                spans = [range_of(expr, profile) for profile in profiles]
                text = "|".join(f"{span.min}:{span.opt}:{span.max}" for span in spans)
                seen[affine.symbol.name] = f"{node.name}[{axis}]={text}"
    return ",".join(seen.values())
