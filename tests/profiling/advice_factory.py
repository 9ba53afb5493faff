"""Recordings made up for tests of advice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from profiling.session_factory import Range, called_session

from executorch_tensorrt.profiling.processors import Advice, advise
from executorch_tensorrt.profiling.session import Session
from executorch_tensorrt.program.declaration import Declaration, MethodInput

ONE = (1, 1, 1)


def base(sequence: int) -> float:
    return 100.0 + 2.0 * sequence


def sequences(
    sizes: Sequence[int], span: Range = (1, 64, 512), *, each: int = 5, slower: float = 0.0, profile: int = 0
) -> Session:
    """Calls with batch 1, `each` for a size, all on one profile. `slower`: per doubling from its opt."""
    calls = [
        ((1, size), base(size) * (1 + slower * abs(math.log2(size / span[1]))), profile)
        for size in sizes
        for _ in range(each)
    ]
    return called_session(calls, [(ONE, span)] * (profile + 1))


def two_profiles(per_doubling: float) -> list[Session]:
    """Sizes on two profiles: chosen automatically, and all once more on the second."""
    spans = [(1, 16, 64), (1, 256, 512)]

    def time(size: int, profile: int) -> float:
        return base(size) * (1 + per_doubling * abs(math.log2(size / spans[profile][1])))

    auto = [((1, size), time(size, int(size > 64)), int(size > 64)) for size in (4, 16, 60, 100, 300)] * 5
    pinned = [((1, size), time(size, 1), 1) for size in (4, 16, 60, 100, 300)] * 5
    return [called_session(calls, [(ONE, span) for span in spans]) for calls in (auto, pinned)]


def declared(session: Session, inputs: list[MethodInput], profiles: list[dict[str, Range]]) -> Session:
    return replace(session, declarations=[Declaration("forward", inputs, profiles)])


def hostile(name: str) -> Advice:
    """Advice on a program that names everything so."""
    session = sequences([1, 40, 300])
    inputs = [replace(item, name=name) for item in session.declarations[0].inputs]
    session = declared(session, inputs, session.declarations[0].profiles)
    session = replace(
        session,
        program={**session.program, "name": name},
        delegates=[replace(item, method=name) for item in session.delegates],
        runs=[replace(run, method=name) for run in session.runs],
        declarations=[replace(item, method=name) for item in session.declarations],
    )
    return advise([session])
