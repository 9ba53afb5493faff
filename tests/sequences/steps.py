"""What a sequence is made of. A step that refers to something that is not there does nothing, so any may be left out.

Modules, states, streams and arrays are numbers, which the world has in its places. Stream 0 is none that is named.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Request = int | Literal["auto"]
Place = Literal["host", "pinned", "moved", "managed", "fixed", "output"]
Way = Literal["", "array", "numpy", "dlpack", "interface"]
Wrong = Literal["", "dtype", "rank", "width", "missing"]
Level = Literal["off", "delegate", "phases", "layers"]


class Step:
    def __str__(self) -> str:
        """Without what is as ever."""
        shown = [
            f"{field.name}={value!r}"
            if not isinstance(value, Argument | Options | Failure)
            else f"{field.name}={value}"
            for field in fields(self)  # type: ignore[arg-type]
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Argument(Step):
    """An input; `output` has the number of the call that made it. A fixed array keeps its values unless `fill`."""

    place: Place
    value: int
    slot: int = 0
    fill: bool = False


@dataclass(frozen=True, repr=False)
class Failure(Step):
    """Call number `position` of CUDA's or the engine's `function` from now on fails; or there is so much memory.

    An engine's that is said to "collect" does that with garbage, and does not fail.
    """

    where: Literal["cuda", "engine", "memory"]
    function: str = ""
    position: int = 0
    error: int | str = 0
    late: bool = False


@dataclass(frozen=True, repr=False)
class Options(Step):
    optimization_profile: Request | None = None
    use_cuda_graphs: bool | None = None
    profile_level: Level | None = None


@dataclass(frozen=True, repr=False)
class Call(Step):
    """`times` calls; with each that is done, one of the guards ends. Outputs of the last are kept as `keep` says.

    `fail` is for the first of the calls, or the last, as the number is odd or even.
    """

    number: int
    module: int
    method: str
    rows: int
    arguments: tuple[Argument, ...]
    guards: tuple[Request, ...] = ()
    stream: int = 0
    times: int = 1
    keep: tuple[Way, ...] = ()
    fail: Failure | None = None
    wrong: Wrong = ""
    on_thread: bool = False


@dataclass(frozen=True, repr=False)
class Read(Step):
    """Of an output that was kept, by a thread whose guard names `stream`; DLPack is told that stream."""

    number: int
    output: int
    way: Way
    stream: int = 0
    on_thread: bool = False


@dataclass(frozen=True, repr=False)
class Drop(Step):
    number: int
    output: int


@dataclass(frozen=True, repr=False)
class Run(Step):
    """Wait for all that is on a stream."""

    stream: int


@dataclass(frozen=True, repr=False)
class Busy(Step):
    """Give a stream something to do for a moment."""

    stream: int


@dataclass(frozen=True, repr=False)
class Replace(Step):
    """Destroy a stream, and make another, which may have the same handle."""

    stream: int


@dataclass(frozen=True, repr=False)
class SetLevel(Step):
    """For the process; None clears it."""

    level: Level | None


@dataclass(frozen=True, repr=False)
class New(Step):
    """Another module in a place. The one before is garbage, which is collected later, or ends."""

    module: int
    state: int
    options: Options
    garbage: bool = False


@dataclass(frozen=True, repr=False)
class Load(Step):
    module: int
    method: str
    options: Options
    fail: Failure | None = None


@dataclass(frozen=True, repr=False)
class Unload(Step):
    module: int
    method: str


@dataclass(frozen=True, repr=False)
class ReadState(Step):
    state: int
    fail: Failure | None = None


@dataclass(frozen=True, repr=False)
class WriteState(Step):
    state: int
    value: int
    fail: Failure | None = None


@dataclass(frozen=True, repr=False)
class ResetState(Step):
    state: int
    fail: Failure | None = None


@dataclass(frozen=True, repr=False)
class Capture(Step):
    """A call into a graph of the caller's; `prepared` by one such call before."""

    number: int
    module: int
    rows: int
    value: int
    stream: int
    guards: tuple[Request, ...] = ()
    prepared: bool = True


@dataclass(frozen=True, repr=False)
class Launch(Step):
    """Of what was captured, with other values in its input."""

    number: int
    stream: int
    value: int


@dataclass(frozen=True, repr=False)
class EndGraph(Step):
    number: int


@dataclass(frozen=True, repr=False)
class Dump(Step):
    """The events that a module has recorded are written to a file."""

    module: int


@dataclass(frozen=True, repr=False)
class Threads(Step):
    """Calls of several threads at the same time, and what another does meanwhile."""

    calls: tuple[tuple[Call, ...], ...]
    meanwhile: tuple[Unload | SetLevel | ReadState, ...] = ()


@dataclass(frozen=True)
class Sequence:
    seed: int
    where: str
    """Where the program has its inputs and outputs."""
    narrows_int64: bool
    modules: tuple[New, ...]
    steps: tuple[Step, ...]
