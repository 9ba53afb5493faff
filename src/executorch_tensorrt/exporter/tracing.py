"""From a PyTorch module and declared inputs to an exported program over the union of all profiles."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, NamedTuple, cast

import torch
from torch.export import Dim, ExportedProgram
from torch.fx.experimental import _config as symbolic_shapes_config
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from executorch_tensorrt.exporter.binding import input_label
from executorch_tensorrt.exporter.domain import Place, check_domain
from executorch_tensorrt.exporter.ranged import generic_size
from executorch_tensorrt.inputs import Input, ShapeRange, as_input, profile_count

_log = logging.getLogger(__name__)

Inputs = Sequence[Any] | Mapping[str, Any]


class _Axis(NamedTuple):
    """One dynamic dim of one input."""

    position: int
    dim: int


def flatten_inputs(inputs: Inputs) -> tuple[list[object], pytree.TreeSpec]:
    """The leaves of an input structure: declarations, and constants such as None or numbers."""
    tree = dict(inputs) if isinstance(inputs, Mapping) else tuple(inputs)
    return pytree.tree_flatten(tree)


def in_signature_order(model: torch.nn.Module, inputs: Inputs) -> Inputs:
    """Named inputs in the order of the model's arguments, which is the order of the method's inputs.

    Raises:
        ValueError: the model has no argument of that name.
    """
    if not isinstance(inputs, Mapping):
        return inputs
    parameters = inspect.signature(model.forward).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    unknown = [name for name in inputs if name not in parameters]
    if unknown and not open_ended:
        raise ValueError(
            f"inputs do not name the model's arguments: got {', '.join(map(str, unknown))}, allowed "
            f"{', '.join(parameters)}; use these names."
        )
    ordered = [name for name in parameters if name in inputs]
    return {name: inputs[name] for name in [*ordered, *unknown]}


def _call_arguments(leaves: Sequence[object], spec: pytree.TreeSpec) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The leaves of an input structure as what a model is called with: by position, or by name."""
    args = pytree.tree_unflatten(list(leaves), spec)
    return ((), args) if isinstance(args, dict) else (args, {})


def declared_inputs(inputs: Inputs) -> list[Input]:
    """The declarations among an input structure's leaves, in order."""
    leaves, _ = flatten_inputs(inputs)
    return [as_input(leaf, f"input {index}") for index, leaf in enumerate(leaves) if not _is_constant(leaf)]


def trace(model: torch.nn.Module, inputs: Inputs, strict: bool) -> ExportedProgram:
    """Export a module so that the program accepts every profile.

    Dims that the model requires to be equal become one dim, declared so or not. The example sizes are all different at
    first, to find out what the model requires; where that fails, dims declared alike get equal sizes.

    Raises:
        ValueError: the exported program accepts less than the profiles declare.
    """
    if model.training:
        warnings.warn("the model is in training mode; call model.eval() before exporting it.", stacklevel=3)
    leaves, spec = flatten_inputs(inputs)
    items = [None if _is_constant(leaf) else as_input(leaf, f"input {index}") for index, leaf in enumerate(leaves)]
    profile_count([(input_label(index, item.name), item) for index, item in enumerate(items) if item])
    ranges: dict[_Axis, tuple[int, int, int]] = {}
    for index, item in enumerate(items):
        ranges.update(_dynamic_dims(index, item) if item else {})
    shared = _shared(items, ranges)
    _check_arguments(model, leaves, spec)
    plan = _Plan(leaves, items, spec, ranges, shared)
    program = _attempt(model, plan, strict)
    check_domain(program, [item for item in items if item], _agreement(model, program, plan))
    return program


def _check_arguments(model: torch.nn.Module, leaves: Sequence[object], spec: pytree.TreeSpec) -> None:
    args, kwargs = _call_arguments(leaves, spec)
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        wanted = ", ".join(map(str, signature.parameters.values())) or "none"
        raise ValueError(
            f"inputs do not fit the model's arguments: got {len(args) + len(kwargs)} ({error}), allowed {wanted}; "
            "declare one each."
        ) from None


@contextmanager
def sizes_of_one() -> Generator[None]:
    """Keep torch from taking for granted that no size over dynamic dims is ever 1, as 65 - S may well be."""
    with cast(Any, symbolic_shapes_config).patch(backed_size_oblivious=True):
        yield


def _agreement(model: torch.nn.Module, program: ExportedProgram, plan: _Plan) -> Callable[[Mapping[Place, int]], bool]:
    """Whether the program gives the model's outputs where some dims have the given sizes, found out by running both."""
    declared = [position for position, item in enumerate(plan.items) if item]

    def agrees(sizes: Mapping[Place, int]) -> bool:
        chosen = {_Axis(declared[position], dim): size for (position, dim), size in sizes.items()}
        names = {plan.shared.get(axis): size for axis, size in chosen.items()}
        every = {
            axis: chosen.get(axis, names.get(plan.shared.get(axis) or "", size))
            for axis, size in _sizes(plan, _Likeness.AXIS_AND_RANGE).items()
        }
        examples, _ = _examples(plan, every)
        args, kwargs = _call_arguments(examples, plan.spec)
        try:
            with torch.no_grad():
                expected = pytree.tree_leaves(model(*args, **kwargs))
                got = pytree.tree_leaves(program.module(check_guards=False)(*args, **kwargs))
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4, equal_nan=True)
        except Exception as error:
            _log.info("the program differs from the model at %s: %s", every, str(error).partition("\n")[0])
            return False
        return True

    return agrees


@contextmanager
def unnarrowed() -> Generator[None]:
    """Keep the ranges of dims as they are while a program is lowered.

    Lowering runs operators on fake tensors again, and some ask whether a size is above a threshold of theirs
    (convolutions: a batch of 16). torch would take the answer for the example size as a bound, and memory would be
    planned for that.
    """
    with ShapeEnv().suppress_guards():
        yield


class _Likeness(Enum):
    """Which undeclared dims get one example size."""

    NONE = auto()
    AXIS_AND_RANGE = auto()
    RANGE = auto()


class _Plan(NamedTuple):
    """What to trace with, but for the sizes of dynamic dims."""

    leaves: Sequence[object]
    items: Sequence[Input | None]
    spec: pytree.TreeSpec
    ranges: Mapping[_Axis, tuple[int, int, int]]
    shared: Mapping[_Axis, str]


def _attempt(model: torch.nn.Module, plan: _Plan, strict: bool) -> ExportedProgram:
    """Trace with different sizes, then with one size for dims declared alike on one axis, then on any axis."""
    failure: Exception | None = None
    tried: list[dict[_Axis, int]] = []
    for likeness in _Likeness:
        sizes = _sizes(plan, likeness)
        if sizes in tried:
            continue
        tried.append(sizes)
        try:
            return _export(model, plan, sizes, strict)
        except Exception as error:
            failure = error
            _log.info("tracing failed with sizes %s: %s", list(sizes.values()), str(error).partition("\n")[0])
    shapes = [_example_shape(plan, position, tried[-1]) for position, item in enumerate(plan.items) if item]
    several = len(plan.ranges) > 1 and len(plan.shared) < len(plan.ranges)
    advice = "if the model needs some dims to be equal, give them one name in shared_dims" if several else ""
    raise ValueError(
        f"the model can't be traced: got {type(failure).__name__} for inputs of shape {', '.join(map(str, shapes))}: "
        f"{str(failure).strip()}; {advice or 'declare inputs that the model takes'}."
    ) from failure


def _is_constant(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, (bool, int, float, str))


def _dynamic_dims(position: int, item: Input) -> dict[_Axis, tuple[int, int, int]]:
    low, opt, high = item.union
    spans = enumerate(zip(low, opt, high, strict=True))
    return {_Axis(position, dim): span for dim, span in spans if span[0] < span[2]}


def _shared(items: Sequence[Input | None], ranges: Mapping[_Axis, tuple[int, int, int]]) -> dict[_Axis, str]:
    """The names of shared dynamic dims, checked to be declared alike everywhere."""
    names: dict[_Axis, str] = {}
    first: dict[str, tuple[_Axis, list[ShapeRange]]] = {}
    for position, item in enumerate(items):
        for dim, name in (item.shared_dims if item else {}).items():
            assert item is not None
            axis = _Axis(position, dim)
            own = [ShapeRange(*((shape[dim],) for shape in entry)) for entry in item.profiles]
            other, theirs = first.setdefault(name, (axis, own))
            count = max(len(own), len(theirs))
            if own * (count // len(own)) != theirs * (count // len(theirs)):
                raise ValueError(
                    f"{input_label(position, item.name)} dim {dim} shares '{name}' with input {other.position} dim "
                    f"{other.dim}, declared otherwise: got {_spans(own)}, allowed {_spans(theirs)}; declare both alike."
                )
            if axis in ranges:
                names[axis] = name
    return names


def _spans(entries: Sequence[ShapeRange]) -> str:
    return ", ".join(f"{low[0]}..{high[0]} (opt {opt[0]})" for low, opt, high in entries)


def _sizes(plan: _Plan, likeness: _Likeness) -> dict[_Axis, int]:
    """An example size for each dynamic dim: one size for shared dims, and for dims that are alike."""
    taken = {size for item in plan.items if item for size in item.union.min}
    chosen: dict[object, int] = {}
    sizes: dict[_Axis, int] = {}
    for axis, span in plan.ranges.items():
        item = cast(Input, plan.items[axis.position])
        spans = tuple((entry.min[axis.dim], entry.max[axis.dim]) for entry in item.profiles)
        own = (
            plan.shared.get(axis)
            or {
                _Likeness.NONE: axis,
                _Likeness.AXIS_AND_RANGE: (axis.dim, spans),
                _Likeness.RANGE: spans,
            }[likeness]
        )
        if own not in chosen:
            chosen[own] = generic_size(*span, taken)
            taken.add(chosen[own])
        sizes[axis] = chosen[own]
    return sizes


def _example_shape(plan: _Plan, position: int, sizes: Mapping[_Axis, int]) -> tuple[int, ...]:
    item = cast(Input, plan.items[position])
    return tuple(sizes.get(_Axis(position, dim), size) for dim, size in enumerate(item.union.min))


def _export(model: torch.nn.Module, plan: _Plan, sizes: Mapping[_Axis, int], strict: bool) -> ExportedProgram:
    examples, dynamic = _examples(plan, sizes)
    args, kwargs = _call_arguments(examples, plan.spec)
    shapes = pytree.tree_unflatten(dynamic, plan.spec)
    with torch.no_grad(), sizes_of_one():
        return torch.export.export(
            model,
            args,
            kwargs or None,
            dynamic_shapes=shapes if isinstance(shapes, dict) else _by_parameter(model, shapes),
            strict=strict,
        )


def _by_parameter(model: torch.nn.Module, shapes: tuple[object, ...]) -> tuple[object, ...]:
    """One entry per parameter of `forward`, as torch.export wants them: those for *args are one."""
    for place, parameter in enumerate(inspect.signature(model.forward).parameters.values()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return (*shapes[:place], tuple(shapes[place:]))
    return shapes


def _examples(plan: _Plan, sizes: Mapping[_Axis, int]) -> tuple[list[object], list[object]]:
    """Arguments of the given sizes, and what torch.export wants to know of their dynamic dims."""
    named = {name: Dim(name, min=plan.ranges[axis][0], max=plan.ranges[axis][2]) for axis, name in plan.shared.items()}
    examples: list[object] = []
    dynamic: list[object] = []
    for position, (leaf, item) in enumerate(zip(plan.leaves, plan.items, strict=True)):
        if item is None:
            examples.append(leaf)
            dynamic.append(None)
            continue
        shape = _example_shape(plan, position, sizes)
        examples.append(torch.ones(shape, dtype=cast(torch.dtype, getattr(torch, item.dtype))))
        hints: dict[int, object] = {}
        for axis, (low, _, high) in plan.ranges.items():
            if axis.position == position:
                name = plan.shared.get(axis)
                hints[axis.dim] = named[name] if name else cast(Any, Dim.AUTO)(min=low, max=high)
        dynamic.append(hints or None)
    return examples, dynamic
