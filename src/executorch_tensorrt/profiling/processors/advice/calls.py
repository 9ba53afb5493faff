"""Recorded calls as sizes and times, for `advice`: which sizes of a method vary, and how long each call took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from executorch_tensorrt.profiling.processors.advice.variables import Floats, Ints, Variable, variables_of
from executorch_tensorrt.profiling.processors.times import methods_of
from executorch_tensorrt.profiling.session import Run, Session
from executorch_tensorrt.profiling.traced_shapes import symbol_sizes
from executorch_tensorrt.program.declaration import Declaration, Dim, MethodInput


@dataclass(frozen=True)
class Calls:
    """The recorded calls of one method.

    Attributes:
        method: the method.
        inputs: the method's.
        variables: what varies; one at least.
        sizes: per call and variable.
        wall_us: per call, from the caller's side.
        profiles: per call, the optimization profile that it used; -1 where not recorded.
        constants: the sizes of dims that have a symbol, but no variable, by symbol.
        left_out: how many calls have no shapes.
    """

    method: str
    inputs: list[MethodInput]
    variables: list[Variable]
    sizes: Ints
    wall_us: Floats
    profiles: Ints
    constants: dict[str, int]
    left_out: int


def recorded_calls(sessions: Sequence[Session], method: str | None = None) -> Calls:
    """The calls of a method in all sessions. `method` may be None where there is one.

    Raises:
        ValueError: there is no session, they are of several programs or methods, or say nothing about input sizes.
    """
    method = _method(sessions, method)
    runs = [run for session in sessions for run in session.runs if run.method == method]
    delegates = [d for session in sessions for d in session.delegates if d.method == method and d.engine is not None]
    if not delegates:
        raise ValueError(
            f"method '{method:.80}' has no TensorRTBackend delegate, so optimization profiles would change nothing; "
            "export it with engines first"
        )
    declared = [item for session in sessions for item in session.declarations if item.method == method]
    shaped = [run for run in runs if run.shapes]
    declaration = declared[0] if declared else _undeclared(method, shaped)
    if declared and not any(dim.symbol for item in declaration.inputs for dim in item.dims):
        raise ValueError(
            f"there is nothing to advise: got method '{method:.80}' with static inputs alone, allowed one with a "
            "dynamic dim; export it with ranges first"
        )
    if not shaped:
        raise ValueError(_no_shapes(runs, method))
    columns = _columns(declaration, shaped)
    variables = variables_of(declaration, columns)
    if not variables:
        raise ValueError(
            f"there is nothing to advise: got the same sizes in all {len(shaped)} calls of '{method:.80}', and the "
            "program does not say what else it takes; record calls with other sizes"
        )
    varying = {symbol for variable in variables for symbol in variable.symbols}
    return Calls(
        method=method,
        inputs=declaration.inputs,
        variables=variables,
        sizes=np.stack([columns[variable.symbols[0]] for variable in variables], axis=1),
        wall_us=np.array([run.wall_us for run in shaped], np.float64),
        profiles=np.array([max(run.profiles.values(), default=-1) for run in shaped], np.int64),
        constants={symbol: int(column[0]) for symbol, column in columns.items() if symbol not in varying},
        left_out=len(runs) - len(shaped),
    )


def _columns(declaration: Declaration, runs: Sequence[Run]) -> dict[str, Ints]:
    """The size of every symbol in every call."""
    count = len(declaration.inputs)
    try:
        if any(len(run.shapes) != count for run in runs):
            raise ValueError(f"got another number of shapes, allowed {count}")
        sizes = [symbol_sizes(declaration, dict(enumerate(run.shapes))) for run in runs]
        columns = {symbol: np.array([item[symbol] for item in sizes], np.int64) for symbol in sizes[0]}
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"the recorded shapes are not those of the inputs of '{declaration.method:.80}': {error}; record again"
        ) from None
    if any(np.any(column < 1) for column in columns.values()):
        raise ValueError(
            f"'{declaration.method:.80}' was called with a size of 0, which no profile takes; record again"
        )
    return columns


def _method(sessions: Sequence[Session], method: str | None) -> str:
    if not sessions:
        raise ValueError("sessions: got none, allowed one or more; record one with 'etrt profile' first")
    programs = list(dict.fromkeys(_program(session) for session in sessions))
    if len(programs) > 1:
        raise ValueError(
            f"sessions are of different programs: got {', '.join(programs)}, allowed one; ask for each apart"
        )
    methods = list(dict.fromkeys(name for session in sessions for name in methods_of(session)))
    if not methods:
        raise ValueError("sessions have no calls: got 0, allowed one or more; record again")
    if method is None and len(methods) > 1:
        raise ValueError(f"sessions have several methods: got {', '.join(methods)}, allowed one; name it (--method)")
    if method is not None and method not in methods:
        raise ValueError(f"sessions have no calls of this method: got '{method:.80}', allowed {', '.join(methods)}")
    return method or methods[0]


def _program(session: Session) -> str:
    return f"'{session.program.get('name', ''):.80}' ({session.program.get('sha256', '')})"


def _no_shapes(runs: Sequence[Run], method: str) -> str:
    if any(event.kind == "delegate" for run in runs for event in run.events):
        return (
            f"the recording does not tell the input shapes of '{method:.80}': got traces of engines, which are not "
            "given every input as it is, allowed calls with their shapes; record them with 'etrt profile'"
        )
    return (
        f"the recording does not tell the input shapes of '{method:.80}': got no delegate events, allowed calls traced "
        "at level delegate, phases or layers; record again at one of them"
    )


def _undeclared(method: str, runs: Sequence[Run]) -> Declaration:
    """What the first call shows."""
    if not runs:
        return Declaration(method, [], [])
    inputs = [
        MethodInput("", dtype, [Dim(f"{k}.{axis}", 1, 0) for axis in range(len(shape))], [])
        for k, (shape, dtype) in enumerate(zip(runs[0].shapes, runs[0].dtypes, strict=False))
    ]
    return Declaration(method, inputs, [])
