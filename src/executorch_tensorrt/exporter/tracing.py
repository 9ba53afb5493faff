"""From a PyTorch module and declared inputs to an exported program over the union of all profiles."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from executorch_tensorrt.exporter.agreement import Agreement
from executorch_tensorrt.exporter.domain import OnlyMultiplesError, Place, check_domain
from executorch_tensorrt.exporter.examples import (
    Axis,
    Examples,
    Inputs,
    Likeness,
    flatten_inputs,
    is_constant,
)
from executorch_tensorrt.graphs.shape_env import sizes_of_one
from executorch_tensorrt.inputs import Input, as_input

_log = logging.getLogger(__name__)


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


def declared_inputs(inputs: Inputs) -> list[Input]:
    """The declarations among an input structure's leaves, in order."""
    leaves, _ = flatten_inputs(inputs)
    return [as_input(leaf, f"input {index}") for index, leaf in enumerate(leaves) if not is_constant(leaf)]


def trace(model: torch.nn.Module, inputs: Inputs, strict: bool) -> ExportedProgram:
    """Export a module so that the program accepts every profile.

    Dims that the model requires to be equal become one dim, declared so or not. The example sizes are all different at
    first, to find out what the model requires; where that fails, dims declared alike get equal sizes. Where the model
    takes only multiples of a number, and all declared sizes are, so does the program.

    Raises:
        ValueError: the exported program accepts less than the profiles declare.
    """
    if model.training:
        warnings.warn("the model is in training mode; call model.eval() before exporting it.", stacklevel=3)
    examples = Examples.of(inputs)
    _check_arguments(model, examples)
    traced = _attempt(model, examples, strict)
    program = traced.program
    while True:
        try:
            _check_domain(model, program, examples)
            return program
        except OnlyMultiplesError as found:
            warnings.warn(str(found), stacklevel=3)
            examples = examples.with_multiples(_of_leaves(examples, found.multiples))
        except ValueError:
            if traced.failure is None:
                raise
            raise traced.failure from traced.failure.__cause__
        sizes = examples.sizes(traced.likeness, divisible=True)
        try:
            program = _export(model, examples, sizes, strict)
        except Exception as error:
            raise _failure(examples, sizes, error) from error


def _of_leaves(examples: Examples, multiples: Mapping[Place, tuple[int, str]]) -> dict[Axis, tuple[int, str]]:
    declared = [position for position, item in enumerate(examples.items) if item]
    return {Axis(declared[position], dim): multiple for (position, dim), multiple in multiples.items()}


def _check_domain(model: torch.nn.Module, program: ExportedProgram, examples: Examples) -> None:
    agreement = Agreement(model, program, examples.arguments)
    check_domain(program, [item for item in examples.items if item], agreement.difference)


def _check_arguments(model: torch.nn.Module, examples: Examples) -> None:
    args, kwargs = examples.call(examples.leaves)
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        wanted = ", ".join(map(str, signature.parameters.values())) or "none"
        raise ValueError(
            f"inputs do not fit the model's arguments: got {len(args) + len(kwargs)} ({error}), allowed {wanted}; "
            "declare one each."
        ) from None
    open_ended = [name for name in kwargs if name not in signature.parameters]
    if open_ended and not all(name.isidentifier() for name in open_ended):
        raise ValueError(
            f"inputs have names that torch.export can't write: got {', '.join(map(repr, open_ended))}, allowed Python "
            "identifiers; rename them, or give them to the model in a dict of its own."
        )
    if open_ended and examples.ranges:
        raise ValueError(
            f"inputs go to the model's **kwargs: got {', '.join(map(repr, open_ended))}, allowed arguments that its "
            "forward names, since torch.export can't make dims of others dynamic; name them in forward, or declare all "
            "shapes static."
        )


class _Traced(NamedTuple):
    """A program, which dims were alike when it was traced, and why only round sizes would do, if so."""

    program: ExportedProgram
    likeness: Likeness
    failure: ValueError | None


def _attempt(model: torch.nn.Module, examples: Examples, strict: bool) -> _Traced:
    """Trace with different sizes, then with one size for dims that are more and more alike; then with round sizes."""
    failure: ValueError | None = None
    tried: list[dict[Axis, int]] = []
    for divisible, likeness in product((False, True), Likeness):
        sizes = examples.sizes(likeness, divisible)
        if sizes in tried:
            continue
        tried.append(sizes)
        try:
            program = _export(model, examples, sizes, strict)
            return _Traced(program, likeness, failure if divisible else None)
        except Exception as error:
            failure = failure or _failure(examples, sizes, error)
            _log.info("tracing failed with sizes %s: %s", list(sizes.values()), str(error).partition("\n")[0])
    assert failure is not None
    raise failure


def _failure(examples: Examples, sizes: Mapping[Axis, int], error: Exception) -> ValueError:
    several = len(examples.ranges) > 1 and len(examples.shared) < len(examples.ranges)
    advice = (
        "declare the data types that the model takes; where it needs dims to be equal, give them one name in "
        "shared_dims; where it needs one to be the sum of others, declare the sums of their min and max"
    )
    if not several:
        advice = "declare shapes and data types that the model takes"
    if isinstance(error, GuardOnDataDependentSymNode):
        advice = "write what depends on the values of tensors with torch.where or torch.cond"
    types = [item.dtype for item in examples.items if item]
    inputs = ", ".join(f"{dtype} {shape}" for dtype, shape in zip(types, examples.shapes(sizes), strict=True))
    failure = ValueError(
        f"the model can't be traced: got {type(error).__name__} for inputs {inputs or 'none'}: "
        f"{str(error).strip().rstrip('.')}; {advice}."
    )
    failure.__cause__ = error
    return failure


def _export(model: torch.nn.Module, examples: Examples, sizes: Mapping[Axis, int], strict: bool) -> ExportedProgram:
    args, kwargs = examples.arguments(examples.shapes(sizes))
    shapes = examples.dynamic_shapes(model)
    with torch.no_grad(), sizes_of_one():
        return torch.export.export(model, args, kwargs or None, dynamic_shapes=shapes, strict=strict)
