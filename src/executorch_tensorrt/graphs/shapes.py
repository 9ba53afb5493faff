"""Shape symbols of a method: their range in each optimization profile, and expressions over them."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod, PythonMod
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

JsonExpr: TypeAlias = "int | str | list[Any]"

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": torch.sym_max,
    "min": torch.sym_min,
}
"""What the words in formulas of `expr_to_json` do, to numbers and to torch's symbolic ones."""


class DimRange(NamedTuple):
    """Smallest, tuned and largest value of one dim in one optimization profile."""

    min: int
    opt: int
    max: int


@dataclass(frozen=True)
class ProfileTable:
    """The range of every shape symbol of a method in every optimization profile, and their canonical signature.

    Attributes:
        profiles: symbol to range, per optimization profile.
        signature: see the wire format.
        inputs: the method's tensor inputs in order, for tools: see `describe_inputs`.
    """

    profiles: tuple[Mapping[str, DimRange], ...]
    signature: str
    inputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def to_json(self) -> str:
        """Text for a compile spec."""
        fields = {"profiles": self.profiles, "signature": self.signature, "inputs": self.inputs}
        return json.dumps(fields, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> ProfileTable:
        """Inverse of `to_json`."""
        data = json.loads(text)
        profiles = tuple({name: DimRange(*entry) for name, entry in profile.items()} for profile in data["profiles"])
        return ProfileTable(profiles, data["signature"], data["inputs"])


def dim_expr(dim: object) -> sympy.Expr:
    """The expression of a size: a number, or a formula over shape symbols."""
    return cast(sympy.Expr, dim.node.expr if isinstance(dim, torch.SymInt) else sympy.Integer(cast(int, dim)))


def tensor_exprs(tensor: torch.Tensor) -> list[sympy.Expr]:
    """The expressions of a tensor's sizes."""
    return [dim_expr(dim) for dim in tensor.shape]


def symbols_of(expr: sympy.Expr) -> list[sympy.Symbol]:
    """The symbols of an expression in a fixed order."""
    return sorted(cast("Iterable[sympy.Symbol]", expr.free_symbols), key=lambda symbol: symbol.name)


def describe_inputs(nodes: Sequence[torch.fx.Node]) -> list[dict[str, Any]]:
    """Name and dims of tensor inputs. A dim is its size, or [symbol, scale, offset]: scale * symbol + offset.

    A dim that is another formula counts as a symbol of its own, without ranges.
    """
    found: list[dict[str, Any]] = []
    for node in nodes:
        dims: list[int | list[str | int]] = []
        for axis, expr in enumerate(tensor_exprs(node.meta["val"])):
            affine = as_affine(expr)
            if affine is not None:
                dims.append([affine.symbol.name, affine.scale, affine.offset])
            else:
                dims.append([f"{node.name}[{axis}]", 1, 0] if symbols_of(expr) else int(expr))
        found.append({"name": node.name, "dims": dims})
    return found


def has_unbacked(value: object) -> bool:
    """Whether a tensor or size depends on data, so that no range of shapes describes it."""
    return isinstance(value, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)) and bool(
        free_unbacked_symbols(value)
    )


def range_of(expr: sympy.Expr, profile: Mapping[str, DimRange]) -> DimRange:
    """The bounds of an expression over one profile's symbol ranges, by interval arithmetic; `opt` by substitution."""
    symbols = symbols_of(expr)
    if not symbols:
        return DimRange(int(expr), int(expr), int(expr))
    ranges = {symbol: ValueRanges(profile[symbol.name].min, profile[symbol.name].max) for symbol in symbols}
    bounds = bound_sympy(expr, cast(Any, ranges))
    opt = expr.subs({symbol: profile[symbol.name].opt for symbol in symbols})
    return DimRange(int(bounds.lower), int(cast(Any, opt)), int(bounds.upper))


def lower_bound(size: int | torch.SymInt) -> int:
    """The smallest value that an edge program admits for a size.

    Where torch's decompositions wrote a lower bound of 2 for one of 1, it is 1 again.
    """
    expr = dim_expr(size)
    symbols = symbols_of(expr)
    if isinstance(size, int) or not symbols:
        return int(expr)
    domain = size.node.shape_env.var_to_range
    ranges = {
        symbol: ValueRanges(1 if domain[symbol].lower == 2 else domain[symbol].lower, domain[symbol].upper)
        for symbol in symbols
    }
    return int(cast(Any, bound_sympy(expr, cast(Any, ranges)).lower))


def range_text(span: DimRange) -> str:
    """A range as messages write it."""
    return f"{span.min}..{span.max}" + (f" (opt {span.opt})" if span.min < span.max else "")


def union_of(profiles: Sequence[Mapping[str, DimRange]]) -> dict[str, DimRange]:
    """Ranges that hold those of every profile, tuned for the first."""
    return {
        name: DimRange(min(entry[name].min for entry in profiles), span.opt, max(entry[name].max for entry in profiles))
        for name, span in profiles[0].items()
    }


class Affine(NamedTuple):
    """`scale * symbol + offset`."""

    symbol: sympy.Symbol
    scale: int
    offset: int


def as_affine(expr: sympy.Expr) -> Affine | None:
    """Read an expression as an affine function of one symbol."""
    symbols = symbols_of(expr)
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    offset = expr.subs(symbol, 0)
    scale = expr.subs(symbol, 1) - offset
    if not (getattr(offset, "is_Integer", False) and getattr(scale, "is_Integer", False) and scale != 0):
        return None
    affine = sympy.expand(scale * symbol + offset - expr) == 0
    return Affine(symbol, int(scale), int(offset)) if affine else None


def expr_to_json(expr: sympy.Expr, names: Mapping[sympy.Symbol, str]) -> JsonExpr:
    """Write an expression for the blob.

    Raises:
        ValueError: it holds an operation or a symbol that the blob has no word for.
    """
    if isinstance(expr, sympy.Integer):
        return int(expr)
    if isinstance(expr, sympy.Symbol):
        if expr not in names:
            raise ValueError(f"shape symbol {expr} does not follow from the inputs.")
        return names[expr]
    args = cast("Sequence[sympy.Expr]", expr.args)
    if isinstance(expr, sympy.Pow) and isinstance(args[1], sympy.Integer) and args[1] > 1:
        return ["mul", *[expr_to_json(args[0], names)] * int(args[1])]
    for kinds, op in _OPERATIONS:
        if isinstance(expr, kinds):
            return [op, *(expr_to_json(arg, names) for arg in args)]
    raise ValueError(f"shape expression {expr} has no form in the engine's metadata.")


def is_expressible(expr: sympy.Expr) -> bool:
    """Whether `expr_to_json` can write the expression, given all its symbols."""
    try:
        expr_to_json(expr, {symbol: symbol.name for symbol in symbols_of(expr)})
    except ValueError:
        return False
    return True


_OPERATIONS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((sympy.Add,), "add"),
    ((sympy.Mul,), "mul"),
    ((FloorDiv,), "floordiv"),
    ((Mod, PythonMod), "mod"),
    ((Max, sympy.Max), "max"),
    ((Min, sympy.Min), "min"),
)


@dataclass(frozen=True)
class BlobShapes:
    """The parts of a blob's metadata that describe shapes; see `describe_shapes`."""

    symbols: list[dict[str, int]]
    inputs: list[list[JsonExpr]]
    outputs: list[list[JsonExpr]]


def describe_shapes(inputs: Sequence[Sequence[sympy.Expr]], outputs: Sequence[Sequence[sympy.Expr]]) -> BlobShapes:
    """Express all shapes of a partition over symbols that follow from its inputs.

    A symbol is read off an input dim that is an affine function of it. A dim that is not (a product of two sizes, say)
    becomes a symbol of its own, and replaces its formula wherever an output repeats it.

    Raises:
        ValueError: an output's shape does not follow from the inputs' shapes.
    """
    solved, solutions = solve_symbols(inputs)
    names = {symbol: f"s{index}" for index, symbol in enumerate(solved)}
    opaque: dict[sympy.Expr, sympy.Symbol] = {}
    for position, exprs in enumerate(inputs):
        for axis, expr in enumerate(exprs):
            if expr not in opaque and not all(symbol in names for symbol in symbols_of(expr)):
                opaque[expr] = sympy.Symbol(f"opaque{len(opaque)}", integer=True, positive=True)
                names[opaque[expr]] = f"s{len(solutions)}"
                solutions.append({"input": position, "dim": axis, "scale": 1, "offset": 0})

    def write(expr: sympy.Expr) -> JsonExpr:
        return expr_to_json(expr.subs(list(opaque.items())) if opaque else expr, names)

    return BlobShapes(
        solutions,
        [[write(expr) for expr in exprs] for exprs in inputs],
        [[write(expr) for expr in exprs] for exprs in outputs],
    )


def solve_symbols(inputs: Sequence[Sequence[sympy.Expr]]) -> tuple[list[sympy.Symbol], list[dict[str, int]]]:
    """Find the symbols that follow from input dims, a plain dim before an affine one, in order of appearance."""
    dims = [(place, axis, as_affine(expr)) for place, exprs in enumerate(inputs) for axis, expr in enumerate(exprs)]
    plain = [entry for entry in dims if entry[2] is not None and (entry[2].scale, entry[2].offset) == (1, 0)]
    found: dict[sympy.Symbol, dict[str, int]] = {}
    for place, axis, affine in [*plain, *dims]:
        if affine is not None and affine.symbol not in found:
            found[affine.symbol] = {"input": place, "dim": axis, "scale": affine.scale, "offset": affine.offset}
    ordered = sorted(found, key=lambda symbol: (found[symbol]["input"], found[symbol]["dim"]))
    return ordered, [found[symbol] for symbol in ordered]
