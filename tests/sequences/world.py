"""A world in which a sequence runs: what all steps need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import singledispatch
from pathlib import Path
from typing import Any, TypeVar

from sequences.device import Device
from sequences.held import (
    CallersGraph,
    Fixed,
    Held,
    Loaded,
    Place,
    State,
    expect_equal,
)
from sequences.running import FaultError
from sequences.steps import (
    Failure,
)

from executorch_tensorrt import (
    EngineState,
    ExecuTorchError,
)

T = TypeVar("T")

RAISED = (ValueError, MemoryError, ExecuTorchError)


class World:
    def __init__(self, program: Path, device: Device | None) -> None:
        self.program = program
        self.device_if_any = device
        self.states = [State(EngineState()) for _ in range(2)]
        self.places: dict[int, Place] = {}
        self.fixed: dict[tuple[str, int], Fixed] = {}
        self.held: dict[tuple[int, int], Held] = {}
        self.graphs: dict[int, CallersGraph] = {}
        self.flying: dict[int, list[Any]] = {}  # by stream: what its work reads
        self.level: str | None = None
        self.pool: ThreadPoolExecutor | None = None

    @property
    def device(self) -> Device:
        assert self.device_if_any is not None
        return self.device_if_any

    def on_thread(self, wanted: bool, work: Callable[[], T]) -> T:
        if not wanted:
            return work()
        if self.pool is None:
            self.pool = ThreadPoolExecutor(1)
        return self.pool.submit(work).result()

    def check(self) -> None:
        if self.device_if_any:
            for fault in self.device_if_any.faults():
                raise FaultError(fault)
        for (number, output), held in self.held.items():
            if held.ready:
                expect_equal(held.value(self.device_if_any), held.expected, f"output {output} of call {number}, kept")

    def run_stream(self, number: int) -> None:
        if number == 0:
            return
        self.device.run(number)
        for held in (*self.held.values(), *(graph.held for graph in self.graphs.values())):
            if held.stream == number:
                held.ready = True
        for fixed in self.fixed.values():
            fixed.readers.discard(number)
        for each in self.flying.pop(number, []):
            if hasattr(each, "free"):
                each.free()

    def run_all(self) -> None:
        for number in (1, 2, 3):
            self.run_stream(number)

    def dlpack_stream(self, number: int) -> int:
        """As DLPack has it: 1 is CUDA's default stream, 2 the thread's own."""
        return {0: 2, 3: 1}.get(number) or self.device.stream(number)

    @contextmanager
    def failing(self, failure: Failure | None) -> Iterator[list[BaseException | str]]:
        """What was made to fail in the block, after it."""
        happened: list[BaseException | str] = []
        if failure is None or self.device_if_any is None:
            yield happened
            return
        self.device.fail(failure)
        try:
            yield happened
        finally:
            happened += self.device.stop_failing()

    def accept(self, error: BaseException | None, happened: list[BaseException | str], what: str) -> None:
        """Something may have failed, and was made to."""
        interrupted = any(isinstance(each, KeyboardInterrupt) for each in happened)
        if interrupted != isinstance(error, KeyboardInterrupt):
            raise FaultError(f"{what}: got {error!r}, wanted {'KeyboardInterrupt' if interrupted else 'none of it'}")
        if error is None or interrupted:
            return
        if not happened:
            raise FaultError(f"{what} failed, and nothing was made to: got {error!r}")
        if not isinstance(error, RAISED) or not str(error):
            raise FaultError(f"{what}: got {error!r}, wanted one of {[each.__name__ for each in RAISED]} with a text")

    def note_loaded(self, place: Place, method: str, options: dict[str, Any]) -> None:
        if method not in place.loaded and place.module.is_method_loaded(method):
            used = {**place.options, **options}
            place.loaded[method] = Loaded(
                used.get("optimization_profile"), used.get("profile_level"), bool(used.get("use_cuda_graphs"))
            )


@singledispatch
def do(step: Any, world: World) -> None:
    """Play a step. Modules of this package say how, for each kind."""
    raise TypeError(step)
