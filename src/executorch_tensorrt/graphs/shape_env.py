"""torch's shape environment: what it takes for granted of a program's dims while others run the program again."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx.experimental import _config as symbolic_shapes_config
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.value_ranges import ValueRanges


@contextmanager
def sizes_of_one() -> Generator[None]:
    """Keep torch from taking for granted that no size over dynamic dims is ever 1, as 65 - S may well be."""
    with cast(Any, symbolic_shapes_config).patch(backed_size_oblivious=True):
        yield


@contextmanager
def unnarrowed() -> Generator[None]:
    """Keep the ranges of dims as they are while a program is lowered.

    Lowering runs operators on fake tensors again, and some ask whether a size is above a threshold of theirs
    (convolutions: a batch of 16). torch would take the answer for the example size as a bound, and memory would be
    planned for that.
    """
    with ShapeEnv().suppress_guards():
        yield


def shape_env_of(program: ExportedProgram) -> ShapeEnv | None:
    """The environment that a program's symbols belong to; None if no dim is dynamic."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            env = getattr(getattr(value, "fake_mode", None), "shape_env", None)
            if env is not None:
                return env
    return None


def guards_of(program: ExportedProgram) -> list[sympy.Basic]:
    """What tracing found that sizes must fulfil for the program to be the model."""
    env = shape_env_of(program)
    return [env.replace(guard.expr) for guard in env.guards] if env else []


def hints_of(program: ExportedProgram) -> dict[sympy.Symbol, int]:
    """The sizes that a program was traced with."""
    env = shape_env_of(program)
    return {symbol: int(size) for symbol, size in env.backed_var_to_val.items()} if env else {}


def widen(program: ExportedProgram, ranges: Mapping[sympy.Symbol, tuple[int, int]]) -> None:
    """Let symbols have at least the given ranges, in the program and for the memory plan."""
    env = shape_env_of(program)
    for symbol, (low, high) in ranges.items():
        wanted = ValueRanges(low, high)
        if symbol in program.range_constraints:
            program.range_constraints[symbol] |= cast(Any, wanted)
        if env is not None and symbol in env.var_to_range:
            env.var_to_range[symbol] |= cast(Any, wanted)


def keep_ranges(program: ExportedProgram) -> None:
    """As `unnarrowed`, for as long as the program exists: for those who lower it themselves."""
    env = cast(Any, shape_env_of(program))
    if env is None or "evaluate_expr" in vars(env):
        return
    evaluate = env.evaluate_expr

    def evaluate_unnarrowed(*args: Any, **kwargs: Any) -> Any:
        with nullcontext() if env._suppress_guards_tls() else env.suppress_guards():
            return evaluate(*args, **kwargs)

    env.evaluate_expr = evaluate_unnarrowed
