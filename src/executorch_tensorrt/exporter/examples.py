"""What to trace a model with: example arguments of well-chosen sizes, and what torch is told of their dims."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import combinations
from math import gcd, lcm
from typing import Any, NamedTuple, cast

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from executorch_tensorrt.exporter.agreement import Arguments
from executorch_tensorrt.exporter.binding import check_shared_dims, input_label
from executorch_tensorrt.graphs.ranged import generic_size
from executorch_tensorrt.inputs import Input, as_input, profile_count, profile_of

Inputs = Sequence[Any] | Mapping[str, Any]
Shape = tuple[int, ...]


class Axis(NamedTuple):
    """One dim of one input: position among the leaves of the inputs' structure, and dim."""

    position: int
    dim: int


class Likeness(Enum):
    """Which undeclared dims get one example size. With SUM, a dim is also the sum of others where its ranges are."""

    NONE = auto()
    AXIS_AND_RANGE = auto()
    RANGE = auto()
    SUM = auto()
    AXIS = auto()


def flatten_inputs(inputs: Inputs) -> tuple[list[object], pytree.TreeSpec]:
    """The leaves of an input structure: declarations, and constants such as None or numbers."""
    tree = dict(inputs) if isinstance(inputs, Mapping) else tuple(inputs)
    return pytree.tree_flatten(tree)


def is_constant(leaf: object) -> bool:
    """Whether a leaf stands for itself."""
    return leaf is None or isinstance(leaf, (bool, int, float, str))


@dataclass(frozen=True)
class Examples:
    """The inputs of a model, and how to make examples of them.

    Attributes:
        leaves: declarations and constants, in order.
        items: the declarations among them; None for a constant.
        spec: the structure that they are the leaves of.
        ranges: min, opt and max of each dynamic dim over all profiles.
        shared: the names of shared dynamic dims.
        multiples: dynamic dims that are multiples of a number: its dim is that number times the one of this name.
    """

    leaves: Sequence[object]
    items: Sequence[Input | None]
    spec: pytree.TreeSpec
    ranges: Mapping[Axis, tuple[int, int, int]]
    shared: Mapping[Axis, str]
    multiples: Mapping[Axis, tuple[int, str]] = field(default_factory=dict[Axis, tuple[int, str]])

    @staticmethod
    def of(inputs: Inputs) -> Examples:
        """Read declared inputs.

        Raises:
            ValueError: they contradict each other.
            TypeError: a leaf is neither a declaration nor a constant.
        """
        leaves, spec = flatten_inputs(inputs)
        items = [None if is_constant(leaf) else as_input(leaf, f"input {index}") for index, leaf in enumerate(leaves)]
        labelled = [(input_label(index, item.name), item) for index, item in enumerate(items) if item]
        profile_count(labelled)
        check_shared_dims(labelled)
        ranges: dict[Axis, tuple[int, int, int]] = {}
        shared: dict[Axis, str] = {}
        for index, item in enumerate(items):
            if item is not None:
                own = _dynamic_dims(index, item)
                ranges.update(own)
                shared.update({axis: item.shared_dims[axis.dim] for axis in own if axis.dim in item.shared_dims})
        return Examples(leaves, items, spec, ranges, shared)

    def sizes(self, likeness: Likeness, divisible: bool = False) -> dict[Axis, int]:
        """An example size for each dynamic dim: one size for shared dims, and for dims that are alike.

        Args:
            likeness: which dims are alike.
            divisible: let sizes have the divisors that all declared sizes of their dims have.
        """
        taken = {size for item in self.items if item for size in item.union.min}
        sizes: dict[Axis, int] = {}
        groups = self._groups(likeness)
        for members in groups:
            spans = [self.ranges[axis] for axis in members]
            low, high = max(low for low, _, _ in spans), min(high for _, _, high in spans)
            together = [members] if low <= high else [[axis] for axis in members]
            for axes in together:
                size = self._size(axes, taken, lcm(*map(self.divisor, axes)) if divisible else 1)
                taken.add(size)
                sizes.update(dict.fromkeys(axes, size))
        if likeness is Likeness.SUM:
            for members in groups:
                sizes.update(dict.fromkeys(members, self._sum(members[0], groups, sizes) or sizes[members[0]]))
        return {axis: sizes[axis] for axis in self.ranges}

    def _sum(self, axis: Axis, groups: Sequence[Sequence[Axis]], sizes: Mapping[Axis, int]) -> int | None:
        """The size of a dim whose ranges are those of one or two others together, or longer by a number: a mask over
        cached and new tokens. None if there are no such others, or the sum is out of range."""
        whole = self._ends(axis)
        others = [group[0] for group in groups if max(self._ends(group[0])) < max(whole)]
        low, _, high = self.ranges[axis]
        for parts in (*combinations(others, 1), *combinations(others, 2)):
            rests = {end - sum(ends) for end, *ends in zip(whole, *map(self._ends, parts), strict=True)}
            size = min(rests) + sum(sizes[part] for part in parts)
            if len(rests) == 1 and low <= size <= high:
                return size
        return None

    def _ends(self, axis: Axis) -> list[int]:
        """Min and max of a dim in each profile."""
        item = cast(Input, self.items[axis.position])
        count = max(len(other.profiles) for other in self.items if other)
        entries = [profile_of(item, index) for index in range(count)]
        return [end[axis.dim] for entry in entries for end in (entry.min, entry.max)]

    def _size(self, axes: Sequence[Axis], taken: Iterable[int], step: int) -> int:
        lows, opts, highs = zip(*(self.ranges[axis] for axis in axes), strict=True)
        low, opt, high = -(-max(lows) // step), opts[0] // step, min(highs) // step
        return step * generic_size(low, min(max(opt, low), high), high, {size // step for size in taken})

    def divisor(self, axis: Axis) -> int:
        """The largest number that all declared sizes of a dim are multiples of."""
        item = cast(Input, self.items[axis.position])
        return gcd(*(shape[axis.dim] for entry in item.profiles for shape in entry))

    def with_multiples(self, multiples: Mapping[Axis, tuple[int, str]]) -> Examples:
        """The same, of a model that takes only multiples of some further sizes."""
        return replace(self, multiples={**self.multiples, **multiples})

    def _groups(self, likeness: Likeness) -> list[list[Axis]]:
        named = {self._alike(axis, likeness): name for axis, name in self.shared.items()}
        groups: dict[object, list[Axis]] = {}
        for axis in self.ranges:
            alike = self._alike(axis, likeness)
            groups.setdefault(self.shared.get(axis) or named.get(alike) or alike, []).append(axis)
        return list(groups.values())

    def _alike(self, axis: Axis, likeness: Likeness) -> object:
        item = cast(Input, self.items[axis.position])
        spans = tuple((entry.min[axis.dim], entry.max[axis.dim]) for entry in item.profiles)
        return {
            Likeness.NONE: axis,
            Likeness.AXIS_AND_RANGE: (axis.dim, spans),
            Likeness.RANGE: spans,
            Likeness.SUM: spans,
            Likeness.AXIS: axis.dim,
        }[likeness]

    def shapes(self, sizes: Mapping[Axis, int]) -> list[Shape]:
        """The shape of each declared input, in order."""
        return [
            tuple(sizes.get(Axis(position, dim), size) for dim, size in enumerate(item.union.min))
            for position, item in enumerate(self.items)
            if item
        ]

    def arguments(self, shapes: Sequence[Shape]) -> Arguments:
        """What to call the model with, given the shape of each declared input."""
        given = iter(shapes)
        return self.call([_example(next(given), item) if item else leaf for leaf, item in self._pairs()])

    def call(self, leaves: Sequence[object]) -> Arguments:
        """Leaves as what a model is called with: by position, or by name."""
        args = pytree.tree_unflatten(list(leaves), self.spec)
        return ((), args) if isinstance(args, dict) else (args, {})

    def dynamic_shapes(self, model: torch.nn.Module) -> Any:
        """What `torch.export.export` wants to know of the dims; None if all are static."""
        if not self.ranges:
            return None
        named = {name: _named(name, self.ranges[axis]) for axis, name in self.shared.items()}
        leaves: list[object] = []
        for position in range(len(self.items)):
            hints: dict[int, object] = {}
            for axis, (low, _, high) in self.ranges.items():
                if axis.position == position:
                    name = self.shared.get(axis)
                    if axis in self.multiples:
                        step, root = self.multiples[axis]
                        hints[axis.dim] = step * Dim(root, min=low // step, max=high // step)
                    else:
                        hints[axis.dim] = named[name] if name else cast(Any, Dim.AUTO)(min=low, max=high)
            leaves.append(hints or None)
        args, kwargs = self.call(leaves)
        return kwargs or _by_parameter(model, args)

    def _pairs(self) -> Iterator[tuple[object, Input | None]]:
        return zip(self.leaves, self.items, strict=True)


def _example(shape: Shape, item: Input) -> torch.Tensor:
    """Different numbers, so that outputs tell where a model took another path; integers may be indices."""
    dtype = cast(torch.dtype, getattr(torch, item.dtype))
    if not dtype.is_floating_point:
        return torch.ones(shape, dtype=dtype)
    count = torch.Size(shape).numel()
    return torch.linspace(0.5, 1.5, count).reshape(shape).to(dtype)


def _by_parameter(model: torch.nn.Module, shapes: tuple[object, ...]) -> tuple[object, ...]:
    """One entry per parameter of `forward`, as torch.export wants them: those for *args are one."""
    for place, parameter in enumerate(inspect.signature(model.forward).parameters.values()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return (*shapes[:place], tuple(shapes[place:]))
    return shapes


def _named(name: str, span: tuple[int, int, int]) -> Any:
    """A dim by name. From 2 where it could begin at 1: torch refuses a model that asks whether such a dim is 1, even if
    that matters to strides alone; `check_domain` finds out, and gives the 1 back."""
    low, _, high = span
    return Dim(name, min=2 if low == 1 and high > 2 else low, max=high)


def _dynamic_dims(position: int, item: Input) -> dict[Axis, tuple[int, int, int]]:
    # The largest opt: where sizes are small, what the model derives from them may be at an end of its range, or 1.
    low, _, high = item.union
    opts = map(max, zip(*(entry.opt for entry in item.profiles), strict=True))
    spans = enumerate(zip(low, opts, high, strict=True))
    return {Axis(position, dim): span for dim, span in spans if span[0] < span[2]}
