"""What commands that run a method take: its inputs and the optimization profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from executorch_tensorrt.cli import values
from executorch_tensorrt.cli.failures import UserError

if TYPE_CHECKING:
    from executorch_tensorrt.runtime import MethodMeta


def optimization_profile(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """The callback of --optimization-profile."""
    if value is None or value == "auto":
        return value
    if not value.isdecimal() or len(value) > 9:
        raise click.BadParameter(f"got '{value}', allowed 'auto' or an index from 0.", ctx, param)
    return int(value)


def parse_inputs(texts: Sequence[str], seed: int, meta: MethodMeta) -> list[Any]:
    """One set of a method's inputs, from --input texts.

    Raises:
        UserError: there are more or fewer than the method takes.
        ValueError, OSError, MemoryError: as `values.parse_value` says.
    """
    if len(texts) != len(meta.inputs):
        raise _wrong_number(texts, meta, f"{len(meta.inputs)}")
    return _parse(texts, seed)


def parse_input_sets(texts: Sequence[str], seed: int, meta: MethodMeta) -> list[tuple[Any, ...]]:
    """One set of inputs after another, from --input texts. Raises what `parse_inputs` raises."""
    count = len(meta.inputs)
    if count == 0 and not texts:
        return [()]
    if count == 0 or not texts or len(texts) % count:
        raise _wrong_number(texts, meta, f"{count}, or a multiple of it for further calls with other inputs")
    parsed = _parse(texts, seed)
    return [tuple(parsed[begin : begin + count]) for begin in range(0, len(parsed), count)]


def _parse(texts: Sequence[str], seed: int) -> list[Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    return [values.parse_value(text, index, rng) for index, text in enumerate(texts)]


def _wrong_number(texts: Sequence[str], meta: MethodMeta, allowed: str) -> UserError:
    known = [
        values.spec_of(item.tensor.dtype, tuple(item.tensor.sizes)) if item.tensor else item.kind.lower()
        for item in meta.inputs
    ]
    return UserError(
        f"method '{meta.name}' has another number of inputs: got {len(texts)} --input, allowed {allowed}; "
        f"the largest it takes are{''.join(f' --input {text!r}' for text in known)}."
    )
