"""Draws a sequence from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any, TypeVar

from sequences import oracle
from sequences.steps import (
    Argument,
    Busy,
    Call,
    Capture,
    Drop,
    Dump,
    EndGraph,
    Failure,
    Launch,
    Level,
    Load,
    New,
    Options,
    Place,
    Read,
    ReadState,
    Replace,
    Request,
    ResetState,
    Run,
    Sequence,
    SetLevel,
    Step,
    Threads,
    Unload,
    Way,
    WriteState,
    Wrong,
)

T = TypeVar("T")

LEVELS: tuple[Level, ...] = ("off", "delegate", "phases", "layers")
WAYS: tuple[Way, ...] = ("array", "numpy", "dlpack", "interface")
STREAMS = 3
"""Numbers 1 and 2 are streams that are made; 3 is CUDA's default stream, named."""
MODULES = STATES = 2

# What can fail, and whether it can have done its work then.
CUDA = {
    "cudaMalloc": False, "cudaMemcpyAsync": True, "cudaMemcpy2DAsync": True, "cudaEventRecord": True,
    "cudaStreamWaitEvent": True, "cudaGraphLaunch": True, "cudaStreamBeginCapture": False, "cudaStreamEndCapture": True,
    "cudaGraphInstantiateWithFlags": False, "cudaEventQuery": True, "cudaPointerGetAttributes": True,
    "cudaStreamIsCapturing": True, "cudaEventCreateWithFlags": False, "cudaEventElapsedTime": True,
    "cudaStreamSynchronize": True, "cudaEventSynchronize": True, "cudaSetDevice": False, "cudaMemsetAsync": True,
    "cudaGetDevice": False,
}  # fmt: skip
ENGINE = (
    "activation_size", "set_activation_memory", "create_context", "set_input_shape", "infer_output_shapes",
    "set_input_address", "set_output_address", "enqueue", "take_layers", "load",
)  # fmt: skip
RAISED = ("ValueError", "RuntimeError", "MemoryError", "KeyError")


@dataclass(frozen=True)
class Traits:
    """What there is to draw from.

    Attributes:
        where: where programs have their inputs and outputs; the first most often.
        has_device: whether there are streams, device arrays and captures.
        has_failures: whether a call of CUDA or an engine can be made to fail.
        length: about how many steps.
    """

    where: tuple[str, ...] = ("device", "host_io", "host")
    has_device: bool = True
    has_failures: bool = True
    length: int = 50


# What few sequences would have together: more shapes than an engine keeps graphs of, arrays that always lie elsewhere
# before calls on two streams, memory that grows although the call that needs it fails, and garbage in a recording.
_QUIET = {"failing": 0.0, "wrong": 0.0, "stateful": 0.0, "on_host": 0.0, "fed": 0.0, "moves": 0.0, "captures": 0.0}
PRESETS: tuple[dict[str, Any], ...] = (
    {**_QUIET, "graphs": True, "keeps": 0.0, "rows": range(1, 13), "fixed": 1.0, "fills": 0.05, "times": (2, 3)},
    {**_QUIET, "graphs": True, "keeps": 0.5, "fixed": 0.0, "streams": (1, 2), "runs": 0.03, "times": (1, 2),
     "rows": (2, 9), "traced": 0.9},
    {**_QUIET, "graphs": True, "failing": 0.2, "rows": (2, 9), "fixed": 1.0, "fills": 0.05, "moves": 0.1,
     "keeps": 0.0, "times": (1, 3), "requests": ("auto",), "engine": ("create_context", "enqueue")},
    {**_QUIET, "graphs": True, "collects": 0.3, "moves": 0.1, "rows": (2, 3), "fixed": 1.0, "modules": (0, 1)},
)  # fmt: skip


class Mood:
    """A sequence's own likings: all things in each would be too rare together."""

    def __init__(self, random: random.Random, where: str) -> None:
        self.graphs = random.choice([True, True, False])
        self.failing = random.choice([0.0, 0.0, 0.05, 0.25])
        self.wrong = random.choice([0.0, 0.03, 0.1])
        self.stateful = random.choice([0.0, 0.2, 0.2, 0.9])
        self.methods = random.choice([("plain",), ("typed",), ("plain", "typed")])
        self.on_host = random.choice([0.0, 0.15, 0.5, 1.0]) if where == "device" else 1.0
        self.keeps = random.choice([0.0, 0.2, 0.5])
        self.rows = random.sample(range(1, 13), random.choice([1, 2, 4, 12]))
        self.fixed = random.choice([0.2, 0.7, 0.95])
        self.fills = random.choice([0.05, 0.5])
        self.fed = random.choice([0.0, 0.15, 0.5])
        self.streams = random.choice([(0,), (1,), (1, 2), (1, 2), (0, 1, 2), (0, 1, 2, 3)])
        self.times = random.choice([(1,), (1, 1, 2), (1, 2, 3, 4), (3, 4, 5)])
        self.modules = random.choice([(0,), (0,), (0, 1)])
        self.runs = random.choice([0.03, 0.1, 0.3])
        self.moves = random.choice([0.0, 0.03, 0.1])  # unload, load, new modules
        self.levels = random.choice([0.0, 0.05])
        self.captures = random.choice([0.0, 0.0, 0.1])
        self.threads = random.choice([0.0, 0.1])
        self.requests: tuple[Request | None, ...] = random.choice(
            [("auto",), (None,), (None, 0, 1, "auto"), (None, 0, 1, "auto", 2)]
        )
        self.engine = ENGINE
        self.collects = random.choice([0.0, 0.05])
        self.traced = random.choice([0.1, 0.5])
        if where == "device" and random.random() < 0.3:
            vars(self).update(random.choice(PRESETS))


class Drawing:
    def __init__(self, seed: int, traits: Traits) -> None:
        self.random = random.Random(seed)
        self.traits = traits
        self.seed = seed
        self.where = self.choice((traits.where[0],) * 6 + traits.where[1:])
        self.mood = Mood(self.random, self.where)
        self.kept: list[tuple[int, int]] = []
        self.graphs: list[int] = []
        self.number = 0

    def choice(self, several: Several[T]) -> T:
        return self.random.choice(several)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def value(self) -> int:
        return self.random.randrange(1000)

    def sequence(self) -> Sequence:
        narrows = self.traits.has_device and self.often(0.3)
        modules = tuple(self.new(module) for module in range(MODULES))
        length = self.random.randrange(self.traits.length // 2, self.traits.length * 3 // 2)
        return Sequence(self.seed, self.where, narrows, modules, tuple(self.step() for _ in range(length)))

    def new(self, module: int) -> New:
        return New(module, self.random.randrange(STATES) if module else 0, self.options(), self.often(0.5))

    def options(self) -> Options:
        level = self.choice(LEVELS) if self.often(self.mood.traced) else None
        graphs = True if self.mood.graphs and not self.often(0.1) else self.choice([None, False])
        return Options(self.choice(self.mood.requests) if not self.often(0.3) else "auto", graphs, level)

    def step(self) -> Step:
        mood, device = self.mood, self.traits.has_device and self.where == "device"
        shares: list[tuple[float, Callable[[], Step]]] = [
            (mood.runs if device else 0, self.run),
            (mood.moves, self.move),
            (mood.levels, lambda: SetLevel(self.choice((*LEVELS, None)))),
            (0.2 * mood.stateful, self.state),
            (mood.captures if device else 0, self.capture),
            (0.3 * mood.keeps if self.kept else 0, self.read),
            (0.5 * mood.keeps if self.kept else 0, lambda: Drop(*self.kept.pop(self.random.randrange(len(self.kept))))),
            (0.05 if device and len(mood.streams) > 1 else 0, lambda: Busy(self.stream() or 1)),
            (0.01 if device else 0, lambda: Replace(self.random.randrange(1, 3))),
            (0.1 if not self.traits.has_device else 0, self.threads),
            (0.02 if not self.traits.has_device else 0, lambda: Dump(self.choice(mood.modules))),
        ]
        at = self.random.random()
        for share, draw in shares:
            if at < share:
                return draw()
            at -= share
        return self.call()

    def stream(self) -> int:
        return self.choice(self.mood.streams) if self.where == "device" and self.traits.has_device else 0

    def run(self) -> Step:
        return Run(self.choice([stream for stream in self.mood.streams if stream] or [1]))

    def move(self) -> Step:
        module, method = self.choice(self.mood.modules), self.method()
        draw = self.random.random()
        if draw < 0.5:
            return Unload(module, method)
        if draw < 0.8:
            return Load(module, method, self.options(), self.failure())
        return self.new(module)

    def state(self) -> Step:
        state = self.random.randrange(STATES) if self.often(0.3) else 0
        draw = self.random.random()
        if draw < 0.5:
            return ReadState(state, self.failure())
        return WriteState(state, self.value(), self.failure()) if draw < 0.8 else ResetState(state, self.failure())

    def method(self) -> str:
        if self.often(self.mood.stateful):
            return self.choice(("decode", "prefill"))
        return self.choice(self.mood.methods)

    def failure(self) -> Failure | None:
        if self.traits.has_failures and self.often(self.mood.collects):
            return Failure("engine", "enqueue", self.choice((0, 1)), "collect")
        if not self.traits.has_failures or not self.often(self.mood.failing):
            return None
        draw, position = self.random.random(), self.choice((0, 0, 0, 1, 2, 5))
        if draw < 0.5:
            function = self.choice(tuple(CUDA))
            late = CUDA[function] and self.often(0.5)
            return Failure("cuda", function, position, self.choice((2, 700)), late)
        if draw < 0.95:
            raised = RAISED + ("KeyboardInterrupt",) * 2
            return Failure("engine", self.choice(self.mood.engine), position, self.choice(raised))
        return Failure("memory", position=self.choice((0, 300, 1000, 3000)))

    def guards(self) -> tuple[Request, ...]:
        found: list[Request] = []
        for _ in range(self.choice((0, 1, 1, 1, 2, 3))):
            request = self.choice(self.mood.requests)
            if request is not None:
                found.append(request)
        return tuple(found)

    def call(self) -> Call:
        mood, method = self.mood, self.method()
        self.number += 1
        wrong: Wrong = self.choice(("dtype", "rank", "width", "missing")) if self.often(mood.wrong) else ""
        times = self.choice(mood.times)
        if method in ("decode", "prefill"):
            rows = self.random.randrange(1, oracle.METHODS[method].most_rows + 1 + self.often(mood.wrong))
        else:
            rows = 13 if self.often(mood.wrong) else self.choice(mood.rows)
        outputs = 2 if method == "typed" else 1
        keep = tuple(self.choice(WAYS) if self.often(mood.keeps) else "" for _ in range(outputs))
        found = Call(
            number=self.number,
            module=self.choice(mood.modules),
            method=method,
            rows=rows,
            arguments=tuple(self.argument(index) for index in range(len(oracle.METHODS[method].inputs))),
            guards=self.guards(),
            stream=self.stream(),
            times=times,
            keep=keep,
            fail=self.failure(),
            wrong=wrong,
            on_thread=self.often(mood.threads),
        )
        self.kept += [(self.number, output) for output, way in enumerate(keep) if way]
        return found

    def argument(self, index: int) -> Argument:
        mood = self.mood
        if self.often(mood.on_host):
            place: Place = "host" if not self.traits.has_device or self.often(0.8) else "pinned"
            if place == "host" and index == 0 and self.kept and self.often(mood.fed / 2):
                return Argument("output", 0, self.choice(self.kept)[0])
            return Argument(place, self.value())
        if index == 0 and self.kept and self.often(mood.fed):
            return Argument("output", 0, self.choice(self.kept)[0])
        if self.often(mood.fixed):
            return Argument("fixed", self.value(), self.random.randrange(3), self.often(mood.fills))
        return Argument("managed" if self.often(0.1) else "moved", self.value())

    def read(self) -> Step:
        number, output = self.choice(self.kept)
        return Read(number, output, self.choice(("numpy", "dlpack", "interface")), self.stream(), self.often(0.3))

    def capture(self) -> Step:
        if self.graphs and self.often(0.75):
            at = self.choice(self.graphs)
            if self.often(0.15):
                self.graphs.remove(at)
                return EndGraph(at)
            return Launch(at, self.random.randrange(1, STREAMS), self.value())
        self.number += 1
        self.graphs.append(self.number)
        stream = self.random.randrange(1, STREAMS)
        module = self.choice(self.mood.modules)
        rows = self.choice(self.mood.rows)
        return Capture(self.number, module, rows, self.value(), stream, self.guards(), self.often(0.9))

    def threads(self) -> Threads:
        several: list[tuple[Call, ...]] = []
        for _ in range(self.random.randrange(2, 4)):
            calls = [self.call() for _ in range(self.random.randrange(1, 4))]
            several.append(tuple(_without_traces(call) for call in calls))
        meanwhile: list[Any] = []
        for _ in range(self.random.randrange(3)):
            draw = self.random.random()
            if draw < 0.4:
                meanwhile.append(Unload(self.choice(self.mood.modules), self.method()))
            elif draw < 0.7:
                meanwhile.append(SetLevel(self.choice((*LEVELS, None))))
            else:
                meanwhile.append(ReadState(0))
        return Threads(tuple(several), tuple(meanwhile))


def _without_traces(call: Call) -> Call:
    """Its outputs are compared at once, and its thread is given."""
    from dataclasses import replace

    arguments = tuple(Argument("host", argument.value) for argument in call.arguments)
    return replace(call, arguments=arguments, keep=(), fail=None, on_thread=False)


def draw(seed: int, traits: Traits) -> Sequence:
    return Drawing(seed, traits).sequence()
