"""Whether a traced program accepts all that the profiles declare."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import gcd, lcm
from typing import Any, NamedTuple, TypeVar, cast

import sympy
from torch.export import ExportedProgram

from executorch_tensorrt.exporter.agreement import Difference
from executorch_tensorrt.exporter.binding import check_relations, input_label, tensor_inputs
from executorch_tensorrt.graphs.shape_env import guards_of, widen
from executorch_tensorrt.graphs.shapes import as_affine, symbols_of, tensor_exprs
from executorch_tensorrt.inputs import Input, profile_of

Sizes = Mapping[sympy.Symbol, int]
FindDifference = Callable[[Sizes], Difference | None]
Place = tuple[int, int]
"""A dim of an input: position among the declared inputs, and axis."""
_T = TypeVar("_T")


class OnlyMultiplesError(Exception):
    """The model takes only multiples of some sizes.

    Attributes:
        multiples: for each such dim the number, and a name for the dim that it multiplies.
    """

    def __init__(self, text: str, multiples: Mapping[Place, tuple[int, str]]) -> None:
        super().__init__(text)
        self.multiples = multiples


def check_domain(program: ExportedProgram, items: Sequence[Input], difference: FindDifference) -> None:
    """See that tracing neither fixed nor narrowed a dim, and that the program holds where a guard says otherwise.

    Many guards are harmless, above all those against a size of 1 where only strides would differ. So where torch
    excludes sizes that a profile allows, `difference` decides, which compares the program with the model there. Where
    they agree, the program gets the declared range back.

    Raises:
        ValueError: the exported program accepts less than the profiles declare.
        OnlyMultiplesError: it does, but would not if some sizes were multiples of a number, as all declared ones are.
    """
    domain = _Domain(program, items, difference)
    domain.check_fixed()
    check_relations(program, items)
    domain.check_ranges()
    domain.check_guards()


class _Source(NamedTuple):
    """Where a symbol is read off: the size of this dim is `scale * symbol + offset`."""

    place: Place
    scale: int
    offset: int


class _Domain:
    def __init__(self, program: ExportedProgram, items: Sequence[Input], difference: FindDifference) -> None:
        self._program = program
        self._items = items
        self._difference = difference
        self._guards = guards_of(program)
        self._nodes = tensor_inputs(program)
        self._sources: dict[sympy.Symbol, _Source] = {}
        for place, expr in self._dims():
            affine = as_affine(expr)
            if affine is not None:
                self._sources.setdefault(affine.symbol, _Source(place, affine.scale, affine.offset))
        self._steps: dict[sympy.Symbol, int] = {}
        self._known: dict[tuple[tuple[str, int], ...], Difference | None] = {}

    def _dims(self) -> Iterator[tuple[Place, sympy.Expr]]:
        for position, node in enumerate(self._nodes):
            for dim, expr in enumerate(tensor_exprs(node.meta["val"])):
                yield (position, dim), expr

    def check_fixed(self) -> None:
        for place, expr in self._dims():
            position, dim = place
            low, high = self._items[position].union.min[dim], self._items[position].union.max[dim]
            if low < high and not symbols_of(expr):
                raise ValueError(
                    f"{self._label(place)} became fixed when the model was traced: got {expr}, wanted {low}..{high}; "
                    "the model's code depends on its value: declare it static, or change the model."
                )

    def check_ranges(self) -> None:
        for symbol, (place, *_) in self._sources.items():
            span = self._program.range_constraints.get(symbol)
            ranges = [self._span(symbol, index) for index in range(self._profile_count())]
            low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
            if low == high or span is None or (span.lower <= low and span.upper >= high):
                continue
            excluded = [
                size
                for least, most in ranges
                for first, last in ((least, min(most, span.lower - 1)), (max(least, span.upper + 1), most))
                if first <= last
                for size in _few(range(int(first), int(last) + 1))
            ]
            for size in excluded:
                if self._compare({symbol: size}) is not None:
                    raise ValueError(
                        f"{self._label(place)} was narrowed when the model was traced: got {span.lower}.."
                        f"{span.upper}, wanted {low}..{high}; the model accepts no more{self._because(symbol)}: narrow "
                        "the profiles, or change the model."
                    )
            widen(self._program, {symbol: (low, high)})

    def check_guards(self) -> None:
        for guard in self._guards:
            symbols = symbols_of(cast(sympy.Expr, guard))
            if not symbols or not all(symbol in self._sources for symbol in symbols):
                continue
            for index in range(self._profile_count()):
                broken = self._broken(guard, index, {symbol: self._steps.get(symbol, 1) for symbol in symbols})
                if broken is not None:
                    self._refuse_or_step(guard, index, *broken)
        if self._steps:
            raise self._only_multiples()

    def _broken(
        self, guard: sympy.Basic, index: int, steps: Mapping[sympy.Symbol, int]
    ) -> tuple[Sizes, Difference] | None:
        """Sizes of a profile, multiples of `steps`, that a guard excludes, and where program and model differ there."""
        points = _points([self._span(symbol, index) for symbol in steps], list(steps.values()))
        choices = [dict(zip(steps, point, strict=True)) for point in points]
        for sizes in _few([sizes for sizes in choices if guard.subs(cast(Any, sizes)) == sympy.false]):
            found = self._compare(sizes)
            if found is not None:
                return sizes, found
        return None

    def _compare(self, sizes: Sizes) -> Difference | None:
        key = tuple(sorted((symbol.name, size) for symbol, size in sizes.items()))
        if key not in self._known:
            self._known[key] = self._difference(sizes)
        return self._known[key]

    def _refuse_or_step(self, guard: sympy.Basic, index: int, sizes: Sizes, found: Difference) -> None:
        where = ", ".join(
            f"{self._label(self._sources[symbol].place)} = {self._size(symbol, size)}" for symbol, size in sizes.items()
        )
        allowed = f"allowed sizes with {self._readable(guard)}"
        if not found.model_fails:
            raise ValueError(
                f"the traced model does not hold for all of profile {index}: got {found.text} for {where}, {allowed}; "
                "the model's code takes another path there: narrow the profiles, or change the model."
            )
        steps = self._allowed_steps(guard, list(sizes))
        if steps:
            self._steps.update(steps)
            return
        raise ValueError(
            f"the model does not take all of profile {index}: got {found.text} for {where}, {allowed}; narrow the "
            "profiles, or change the model."
        )

    def _allowed_steps(self, guard: sympy.Basic, symbols: Sequence[sympy.Symbol]) -> dict[sympy.Symbol, int]:
        """The smallest divisors of what is declared whose multiples a guard allows; empty if there are none."""
        divisors = {symbol: self._divisor(symbol) for symbol in symbols}
        known = {symbol: self._steps.get(symbol, 1) for symbol in symbols}

        def hold(steps: Mapping[sympy.Symbol, int]) -> bool:
            return all(self._broken(guard, index, steps) is None for index in range(self._profile_count()))

        for divisor in range(2, max(divisors.values()) + 1):
            steps = {symbol: gcd(lcm(divisor, known[symbol]), own) for symbol, own in divisors.items()}
            if steps == known or not hold(steps):
                continue
            for symbol in symbols:
                if hold({**steps, symbol: known[symbol]}):
                    steps[symbol] = known[symbol]
            return steps
        return {}

    def _only_multiples(self) -> OnlyMultiplesError:
        steps = {symbol: step for symbol, step in self._steps.items() if step > 1}
        multiples = {
            place: (steps[expr], "_{}_{}".format(*self._sources[expr].place))
            for place, expr in self._dims()
            if isinstance(expr, sympy.Symbol) and expr in steps
        }
        dims = ", ".join(f"{self._label(place)} in multiples of {size}" for place, (size, _) in multiples.items())
        return OnlyMultiplesError(
            f"the model does not take all declared sizes: got {dims}; others are refused when the program runs.",
            multiples,
        )

    def _divisor(self, symbol: sympy.Symbol) -> int:
        """The largest number that all declared sizes of a plain dim are multiples of."""
        (position, dim), scale, offset = self._sources[symbol]
        sizes = (shape[dim] for entry in self._items[position].profiles for shape in entry)
        return gcd(*sizes) if (scale, offset) == (1, 0) else 1

    def _profile_count(self) -> int:
        return max((len(item.profiles) for item in self._items), default=1)

    def _label(self, place: Place) -> str:
        position, dim = place
        return f"{input_label(position, self._items[position].name or self._nodes[position].name)} dim {dim}"

    def _size(self, symbol: sympy.Symbol, value: int) -> int:
        _, scale, offset = self._sources[symbol]
        return scale * value + offset

    def _because(self, symbol: sympy.Symbol) -> str:
        related = [self._readable(guard) for guard in self._guards if symbol in guard.free_symbols]
        return f" ({', '.join(related[:3])})" if related else ""

    def _readable(self, guard: sympy.Basic) -> str:
        """A guard with dims in the place of torch's symbols: `x[1]` is dim 1 of input 'x'."""
        names = {
            symbol: (sympy.Symbol(f"{self._nodes[position].name}[{dim}]", integer=True, positive=True) - offset) / scale
            for symbol, ((position, dim), scale, offset) in self._sources.items()
        }
        return str(guard.xreplace(names))

    def _span(self, symbol: sympy.Symbol, index: int) -> tuple[int, int]:
        (position, dim), scale, offset = self._sources[symbol]
        entry = profile_of(self._items[position], index)
        ends = ((entry.min[dim] - offset) // scale, (entry.max[dim] - offset) // scale)
        return min(ends), max(ends)


def _few(choices: Sequence[_T]) -> Sequence[_T]:
    """The ends and the middle of many."""
    return choices if len(choices) <= 3 else (choices[0], choices[len(choices) // 2], choices[-1])


def _points(spans: Sequence[tuple[int, int]], steps: Sequence[int]) -> list[tuple[int, ...]]:
    """Sizes to try: all of a single range up to a bound, else ends, neighbours and middles; multiples of the steps."""
    counts = [range(-(-low // step), high // step + 1) for (low, high), step in zip(spans, steps, strict=True)]
    if len(counts) == 1 and len(counts[0]) <= 4096:
        chosen: list[list[int]] = [list(counts[0])]
    else:
        chosen = [
            sorted({each[place] for place in (0, 1, len(each) // 2, -2, -1) if -len(each) <= place < len(each)})
            for each in counts
        ]
    sizes = [[step * count for count in each] for each, step in zip(chosen, steps, strict=True)]
    return list(product(*sizes)) if len(spans) <= 4 else []
