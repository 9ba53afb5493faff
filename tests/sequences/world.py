"""A world in which a sequence runs: what there is, and what must be in it."""

from __future__ import annotations

import gc
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, singledispatchmethod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fakes.python_engine import in_capsule
from sequences import oracle
from sequences.device import Device, Memory
from sequences.oracle import METHODS, Array
from sequences.promises import GARBAGE_MAY_END_ANYWHERE, OUTPUTS_CARRY_EVENT, STAGED_INPUTS_ARE_ORDERED
from sequences.running import FaultError
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
    Load,
    New,
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
    WriteState,
)

from executorch_tensorrt import (
    CudaStreamGuard,
    DeviceArray,
    EngineState,
    ExecuTorchError,
    Module,
    OptimizationProfileGuard,
)
from executorch_tensorrt.profiling import clear_profiling, set_profiling

T = TypeVar("T")

RAISED = (ValueError, MemoryError, ExecuTorchError)


@dataclass
class State:
    state: EngineState
    cache: Array | None = field(default_factory=lambda: np.zeros((oracle.POSITIONS, oracle.WIDTH), np.float32))
    """None if nobody can say."""


@dataclass
class Loaded:
    """A method, and what it was loaded with."""

    request: Request | None
    level: str | None
    graphs: bool


@dataclass
class Place:
    module: Module
    state: State
    options: dict[str, Any]
    loaded: dict[str, Loaded] = field(default_factory=dict[str, Loaded])


@dataclass
class Fixed:
    """An array of the caller's that stays where it is."""

    memory: Memory
    values: Array
    readers: set[int] = field(default_factory=set[int])


@dataclass
class Held:
    """An output that the caller keeps, and what it must hold."""

    array: Any
    expected: Array
    engine: Loaded | None
    stream: int
    ready: bool
    way: str = "array"
    capsule: Any = None

    @property
    def is_feedable(self) -> bool:
        return self.expected.ndim == 2 and self.expected.dtype == np.float32

    def value(self, device: Device | None) -> Array:
        """What it holds now. Nothing may be under way that writes it, unless it waits by itself."""
        if isinstance(self.array, np.ndarray):
            return self.array
        assert device is not None
        if self.capsule is not None:
            return device.peek(in_capsule(self.capsule).data, self.expected.shape, self.expected.dtype)
        return device.peek(self.array.__cuda_array_interface__["data"][0], self.expected.shape, self.expected.dtype)


@dataclass
class CallersGraph:
    graph: Any
    place: Place
    memory: Memory
    rows: int
    held: Held


def expect_equal(got: Array, wanted: Array, what: str) -> None:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise FaultError(f"{what}: got {got.dtype} {got.shape}, wanted {wanted.dtype} {wanted.shape}")
    if not np.array_equal(got, wanted):
        rows = [row for row in range(len(wanted)) if not np.array_equal(got[row], wanted[row])]
        shown = "".join(f"\n  row {row}: got {got[row].tolist()}, wanted {wanted[row].tolist()}" for row in rows[:4])
        raise FaultError(f"{what}: {len(rows)} of {len(wanted)} rows are wrong{shown}")


def profile_of(method: str, rows: int, request: Request | None) -> int | None:
    """The optimization profile that a call uses; None if it is refused."""
    spans = METHODS[method].spans
    if spans[0][0] == spans[-1][1]:  # an engine of fixed shapes heeds no request
        request = "auto"
    wanted = range(len(spans)) if request == "auto" else [request or 0]
    return next((p for p in wanted if isinstance(p, int) and p < len(spans) and METHODS[method].fits(p, rows)), None)


class World:
    def __init__(self, sequence: Sequence, program: Path, device: Device | None) -> None:
        self.program = program
        self._device = device
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
        assert self._device is not None
        return self._device

    @classmethod
    def run(cls, sequence: Sequence, program: Path, device: Device | None) -> None:
        before = device.alive() if device else None
        world = cls(sequence, program, device)
        at: Step | str = "the beginning"
        try:
            for at in (*sequence.modules, *sequence.steps):
                world.do(at)
                world.check()
            at = "the end"
            world.end()
            if device and device.alive() != before:
                gc.collect()
                if device.alive() != before:
                    raise FaultError(f"left alive: got {device.alive()}, wanted {before}")
        except FaultError as fault:
            raise FaultError(f"at {at}: {fault}") from None

    def on_thread(self, wanted: bool, work: Callable[[], T]) -> T:
        if not wanted:
            return work()
        if self.pool is None:
            self.pool = ThreadPoolExecutor(1)
        return self.pool.submit(work).result()

    # What must be.

    def check(self) -> None:
        if self._device:
            for fault in self._device.faults():
                raise FaultError(fault)
        for (number, output), held in self.held.items():
            if held.ready:
                expect_equal(held.value(self._device), held.expected, f"output {output} of call {number}, kept")

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

    @contextmanager
    def failing(self, failure: Failure | None) -> Iterator[list[BaseException | str]]:
        """What was made to fail in the block, after it."""
        happened: list[BaseException | str] = []
        if failure is None or self._device is None:
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

    # Steps.

    @singledispatchmethod
    def do(self, step: Any) -> None:
        raise TypeError(step)

    @do.register
    def _(self, step: New) -> None:
        before = self.places.pop(step.module, None)
        if before:
            self.end_graphs(before)
            if step.garbage and GARBAGE_MAY_END_ANYWHERE:
                cycle: list[Any] = [before.module]
                cycle.append(cycle)
                del cycle
        del before
        options = {key: value for key, value in vars(step.options).items() if value is not None}
        state = self.states[step.state]
        self.places[step.module] = Place(Module(self.program, state=state.state, **options), state, options)

    @do.register
    def _(self, step: Load) -> None:
        place = self.places.get(step.module)
        if place is None:
            return
        options = {key: value for key, value in vars(step.options).items() if value is not None}
        if step.method in place.loaded:
            try:
                place.module.load_method(step.method, **options)
            except ValueError:
                return
            raise FaultError("a method was loaded twice")
        error = None
        with self.failing(step.fail) as happened:
            try:
                place.module.load_method(step.method, **options)
            except BaseException as raised:
                error = raised.with_traceback(None)
        self.accept(error, happened, "loading")
        self.note_loaded(place, step.method, options)

    def note_loaded(self, place: Place, method: str, options: dict[str, Any]) -> None:
        if method not in place.loaded and place.module.is_method_loaded(method):
            used = {**place.options, **options}
            place.loaded[method] = Loaded(
                used.get("optimization_profile"), used.get("profile_level"), bool(used.get("use_cuda_graphs"))
            )

    @do.register
    def _(self, step: Unload) -> None:
        place = self.places.get(step.module)
        if place is None:
            return
        self.end_graphs(place)
        was = place.module.unload_method(step.method)
        if was != (step.method in place.loaded):
            raise FaultError(f"unloading: got {was}, wanted {not was}")
        place.loaded.pop(step.method, None)

    @do.register
    def _(self, step: SetLevel) -> None:
        self.level = step.level
        clear_profiling() if step.level is None else set_profiling(step.level)

    @do.register
    def _(self, step: Run) -> None:
        self.run_stream(step.stream)

    @do.register
    def _(self, step: Busy) -> None:
        self.device.busy(step.stream)

    @do.register
    def _(self, step: Replace) -> None:
        self.run_stream(step.stream)
        self.device.replace_stream(step.stream)

    @do.register
    def _(self, step: Drop) -> None:
        self.held.pop((step.number, step.output), None)

    @do.register
    def _(self, step: Read) -> None:
        held = self.held.get((step.number, step.output))
        if held is None or not isinstance(held.array, DeviceArray):
            return
        if not OUTPUTS_CARRY_EVENT and not held.ready:
            self.run_stream(held.stream)
        got = self.on_thread(step.on_thread, lambda: self.read(held, step.way, step.stream))
        expect_equal(got, held.expected, f"output {step.output} of call {step.number}, read")

    def dlpack_stream(self, number: int) -> int:
        """As DLPack has it: 1 is CUDA's default stream, 2 the thread's own."""
        return {0: 2, 3: 1}.get(number) or self.device.stream(number)

    def read(self, held: Held, way: str, stream: int) -> Array:
        with ExitStack() as guards:
            if stream:
                guards.enter_context(CudaStreamGuard(self.device.stream(stream)))
            if way == "numpy":
                return held.array.numpy()
            if way == "dlpack":
                capsule = held.array.__dlpack__(stream=self.dlpack_stream(stream))
                self.run_stream(stream) if stream else self.device.run_own()
                return device_value(self.device, capsule, held.expected)
            return Held(held.array, held.expected, held.engine, 0, True).value(self.device)

    @do.register
    def _(self, step: ReadState) -> None:
        state = self.states[step.state]
        if not state.state.names:
            return
        value = None
        error = None
        with self.failing(step.fail) as happened:
            try:
                value = state.state.read("cache")
            except BaseException as raised:
                error = raised.with_traceback(None)
        self.accept(error, happened, "reading the state")
        if value is not None and state.cache is not None:
            expect_equal(value, state.cache, f"state {step.state}")

    @do.register
    def _(self, step: WriteState) -> None:
        value = oracle.floats(oracle.POSITIONS, step.value)
        self.change_state(step.state, step.fail, value, lambda state: state.write("cache", value))

    @do.register
    def _(self, step: ResetState) -> None:
        value = np.zeros((oracle.POSITIONS, oracle.WIDTH), np.float32)
        self.change_state(step.state, step.fail, value, lambda state: state.reset())

    def change_state(
        self, number: int, failure: Failure | None, value: Array, change: Callable[[EngineState], None]
    ) -> None:
        state = self.states[number]
        if not state.state.names:
            return
        error = None
        with self.failing(failure) as happened:
            try:
                change(state.state)
            except BaseException as raised:
                error = raised.with_traceback(None)
        self.accept(error, happened, "changing the state")
        if error:
            change(state.state)
        state.cache = value

    # Calls.

    @do.register
    def _(self, step: Call) -> None:
        place = self.places.get(step.module)
        if place is None:
            return
        if self._device and not STAGED_INPUTS_ARE_ORDERED and any(map(self.may_lie_on_host, step.arguments)):
            self.run_all()
        for launched in self.graphs.values():  # the order of its launches is the caller's
            if launched.place is place and not launched.held.ready:
                self.run_stream(launched.held.stream)
        given = self.arguments(step, place)
        if given is None:
            return
        values, arguments, moved = given
        outputs: list[Any] = []
        error: BaseException | None = None
        expected: list[Array] = []
        requests, done = list(step.guards), 0
        for repeat in range(step.times):
            guards = requests[: max(0, len(requests) - repeat)]
            del outputs[:]
            enqueued = self._device.enqueued() if self._device else 0
            with self.failing(step.fail if repeat == step.times - 1 else None) as happened:
                try:
                    outputs += self.on_thread(step.on_thread, partial(self.execute, place, step, arguments, guards))
                except BaseException as raised:
                    error = raised.with_traceback(None)
            self.note_loaded(place, step.method, {})
            loaded = place.loaded.get(step.method)
            default = loaded.request if loaded else place.options.get("optimization_profile")
            profile = profile_of(step.method, len(values[0]), guards[-1] if guards else default)
            if step.wrong or profile is None:
                self.accept_refusal(error, happened, enqueued)
                error = error or ValueError()
            else:
                self.accept(error, happened, "a call")
            if error:
                self.settle_state(place, step.method, values, happened)
                break
            selected = [selection.profile for selection in place.module.last_selections]
            if selected != [profile]:
                raise FaultError(f"optimization profile: got {selected}, wanted {profile}")
            expected = self.results(place, step.method, values)
            done += 1
        if error is None:
            self.keep(step, place, outputs, expected, arguments)
        self.release(step, moved, arguments, done > 0)
        del outputs[:], arguments[:]

    def may_lie_on_host(self, argument: Argument) -> bool:
        outputs = (held.array for (number, _), held in self.held.items() if number == argument.slot)
        if argument.place == "output":
            return any(isinstance(output, np.ndarray) for output in outputs)
        return argument.place in ("host", "pinned")

    def settle_state(self, place: Place, method: str, values: list[Array], happened: list[Any]) -> None:
        """Where a call fails behind its engine, at the copy of an output, the state is that of after it."""
        if not happened or not METHODS[method].has_state or not place.state.state.names:
            return
        assert place.state.cache is not None
        found = place.state.state.read("cache")
        after = oracle.cached(*values, place.state.cache)[1]
        expect_equal(found, after if np.array_equal(found, after) else place.state.cache, "state after a failure")
        place.state.cache = found

    def accept_refusal(self, error: BaseException | None, happened: list[Any], enqueued: int) -> None:
        if happened and error is not None:
            self.accept(error, happened, "a call")
        elif not isinstance(error, ValueError):
            raise FaultError(f"a call that must be refused: got {error!r}, wanted ValueError")
        elif self._device and self._device.enqueued() != enqueued:
            raise FaultError("a call that was refused has queued work")

    def execute(self, place: Place, step: Call | Capture, arguments: list[Any], guards: list[Request]) -> list[Any]:
        with ExitStack() as entered:
            if step.stream:
                entered.enter_context(CudaStreamGuard(self.device.stream(step.stream)))
            for request in guards:
                made = OptimizationProfileGuard.auto() if request == "auto" else OptimizationProfileGuard(request)
                entered.enter_context(made)
            return place.module.run_method(step.method if isinstance(step, Call) else "plain", arguments)

    def results(self, place: Place, method: str, values: list[Array]) -> list[Array]:
        if not METHODS[method].has_state:
            return (oracle.plain if method == "plain" else oracle.typed)(*values)
        assert place.state.cache is not None
        total, place.state.cache = oracle.cached(*values, place.state.cache)
        return [total]

    def arguments(self, step: Call, place: Place) -> tuple[list[Array], list[Any], list[Memory]] | None:
        """What the arguments hold, what a call is given, and memory to free. Makes way for what the caller changes."""
        rows = step.rows
        for argument in step.arguments:
            if argument.place == "output":
                held = self.fed(argument, step, place)
                if held is None:
                    return None
                rows = len(held.expected)
        values: list[Array] = []
        arguments: list[Any] = []
        moved: list[Memory] = []
        for index, argument in enumerate(step.arguments):
            value = oracle.argument(step.method, index, rows, argument.value)
            if argument.place == "output":
                held = self.fed(argument, step, place)
                assert held is not None
                value, given = held.expected, held.array
            elif argument.place == "fixed" and not step.wrong:
                fixed = self.fixed_array(step, index, argument)
                value = fixed.values[: value.size].reshape(value.shape)
                given = fixed.memory.view(value.shape)
            else:
                given_value = wrong(value, step.wrong) if index == 0 else value
                if argument.place == "host":
                    given = given_value.copy()
                else:
                    place_of = "moved" if argument.place == "fixed" else argument.place
                    moved.append(self.device.memory(given_value, place_of))
                    given = moved[-1].argument
            values.append(value)
            arguments.append(given)
        if step.wrong == "missing" or (step.wrong and step.arguments[0].place == "output"):
            arguments.pop()
        return values, arguments, moved

    def fed(self, argument: Argument, step: Call, place: Place) -> Held | None:
        """An output of an earlier call that this one takes."""
        for (number, _), held in self.held.items():
            if number != argument.slot or not held.is_feedable or np.abs(held.expected).max() > oracle.LARGEST:
                continue
            is_own = held.engine is place.loaded.get(step.method)
            if not (held.ready or is_own or OUTPUTS_CARRY_EVENT):
                self.run_stream(held.stream)
            return held
        return None

    def kind(self, step: Call, index: int) -> str:
        return "floats" if index == 0 else "positions" if METHODS[step.method].has_state else "ids"

    def fixed_array(self, step: Call, index: int, argument: Argument) -> Fixed:
        kind = self.kind(step, index)
        values = oracle.argument(step.method, index, 13, argument.value).reshape(-1)
        fixed = self.fixed.get((kind, argument.slot))
        if fixed is None:
            fixed = self.fixed[kind, argument.slot] = Fixed(self.device.memory(values, "moved"), values)
        elif argument.fill:
            for stream in sorted(fixed.readers):
                self.run_stream(stream)
            fixed.memory.write(values)
            fixed.values = values
        return fixed

    def keep(self, step: Call, place: Place, outputs: list[Any], expected: list[Array], arguments: list[Any]) -> None:
        if len(outputs) != len(expected):
            raise FaultError(f"outputs: got {len(outputs)}, wanted {len(expected)}")
        for index, (output, wanted) in enumerate(zip(outputs, expected, strict=True)):
            what = f"output {index} of call {step.number}"
            if isinstance(output, np.ndarray):
                expect_equal(output, wanted, what)
            elif (output.shape, output.dtype) != (wanted.shape, str(wanted.dtype)):
                raise FaultError(f"{what}: got {output.dtype} {output.shape}, wanted {wanted.dtype} {wanted.shape}")
            held = Held(output, wanted, place.loaded.get(step.method), step.stream, not step.stream)
            way = step.keep[index] if index < len(step.keep) else ""
            if isinstance(output, np.ndarray):
                held.ready = True
            elif held.ready:
                expect_equal(held.value(self._device), wanted, what)
            if way:
                self.held[step.number, index] = self.kept(held, way, step)

    def kept(self, held: Held, way: str, step: Call) -> Held:
        """As `way` says."""
        if isinstance(held.array, np.ndarray):
            return held
        if way in ("numpy", "dlpack") and not OUTPUTS_CARRY_EVENT:
            self.run_stream(step.stream)
            held.ready = True
        if way == "numpy":
            copied = self.on_thread(step.on_thread, held.array.numpy)
            return Held(copied, held.expected, held.engine, 0, True, way)
        if way == "dlpack":
            held.capsule = held.array.__dlpack__(stream=self.dlpack_stream(step.stream))
        return held

    def release(self, step: Call, moved: list[Memory], arguments: list[Any], is_queued: bool) -> None:
        """What the call may still read stays; the rest is the caller's again, who uses it."""
        for argument in arguments:
            if isinstance(argument, np.ndarray) and not any(argument is held.array for held in self.held.values()):
                argument.fill(77)
        if step.stream and is_queued:
            for index, argument in enumerate(step.arguments):
                if argument.place == "fixed" and not step.wrong:
                    self.fixed[self.kind(step, index), argument.slot].readers.add(step.stream)
            engine = self.places[step.module].loaded.get(step.method)
            others = [a for a in arguments if isinstance(a, DeviceArray) and not self.is_of(a, engine)]
            self.flying.setdefault(step.stream, []).extend([*moved, *others])
        else:
            for memory in moved:
                memory.free()

    def is_of(self, array: DeviceArray, engine: Loaded | None) -> bool:
        return any(held.array is array and held.engine is engine for held in self.held.values())

    # Graphs of the caller's.

    @do.register
    def _(self, step: Capture) -> None:
        place = self.places.get(step.module)
        if place is None:
            return
        request = step.guards[-1] if step.guards else None
        loaded = place.loaded.get("plain")
        if request is None:
            request = loaded.request if loaded else place.options.get("optimization_profile")
        if profile_of("plain", step.rows, request) is None:
            return
        values = oracle.floats(step.rows, step.value)
        memory = self.device.memory(values, "moved")
        arguments, guards = [memory.argument], list(step.guards)
        error: BaseException | None = None
        for _ in range(2):  # a call that is replayed does not prepare for one that is captured; the next one is not
            if step.prepared:
                self.execute(place, step, arguments, guards)
                self.note_loaded(place, "plain", {})
            outputs: list[Any] = []
            self.device.begin_capture(step.stream)
            try:
                outputs += self.execute(place, step, arguments, guards)
                error = None
            except BaseException as raised:
                error = raised.with_traceback(None)
            finally:
                graph = self.device.end_capture(step.stream)
                self.note_loaded(place, "plain", {})
            if error is None:
                break
            self.device.end_graph(graph)
        if error is not None:
            level = self.level or (place.loaded["plain"].level if "plain" in place.loaded else None)
            self.run_stream(step.stream)
            memory.free()
            if not isinstance(error, ValueError) or (step.prepared and level != "layers"):
                raise FaultError(f"a call that takes part in a capture: got {error!r}")
            return
        (output,) = outputs
        held = Held(output, oracle.plain(values)[0], place.loaded.get("plain"), step.stream, False)
        self.graphs[step.number] = CallersGraph(graph, place, memory, step.rows, held)
        self.run_stream(step.stream)
        held.ready = False

    @do.register
    def _(self, step: Launch) -> None:
        launched = self.graphs.get(step.number)
        if launched is None:
            return
        self.run_all()
        self.check_graph(launched)
        values = oracle.floats(launched.rows, step.value)
        launched.memory.write(values)
        self.device.launch(launched.graph, step.stream)
        launched.held.expected = oracle.plain(values)[0]
        launched.held.stream, launched.held.ready = step.stream, False
        launched.held.way = "launched"

    def check_graph(self, launched: CallersGraph) -> None:
        if launched.held.way == "launched" and launched.held.ready:
            expect_equal(launched.held.value(self._device), launched.held.expected, "output of a graph")

    @do.register
    def _(self, step: EndGraph) -> None:
        launched = self.graphs.pop(step.number, None)
        if launched is None:
            return
        self.run_stream(launched.held.stream)
        launched.held.ready = True
        self.check_graph(launched)
        self.device.end_graph(launched.graph)
        launched.memory.free()

    def end_graphs(self, place: Place) -> None:
        for number in [number for number, graph in self.graphs.items() if graph.place is place]:
            self.do(EndGraph(number))

    # Without a device.

    @do.register
    def _(self, step: Dump) -> None:
        place = self.places.get(step.module)
        if place is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                place.module.write_etdump(Path(folder) / "events")
            except ValueError as error:
                if "no events" not in str(error):
                    raise

    @do.register
    def _(self, step: Threads) -> None:
        """Rows of the cache that a thread writes are its own, so that what is there in the end has one answer."""
        faults: list[BaseException] = []
        start = threading.Barrier(len(step.calls) + 1)
        touched = {
            call.module: self.places[call.module]
            for calls in step.calls
            for call in calls
            if call.module in self.places
        }

        def work(thread: int, calls: tuple[Call, ...]) -> None:
            try:
                start.wait()
                for call in calls:
                    place = touched.get(call.module)
                    if place is not None:
                        self.call_beside_others(place, call, thread, len(step.calls))
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=work, args=(k, calls)) for k, calls in enumerate(step.calls)]
        for thread in threads:
            thread.start()
        start.wait()
        for each in step.meanwhile:
            if isinstance(each, SetLevel):
                self.do(each)
            elif isinstance(each, Unload) and each.module in touched:
                touched[each.module].module.unload_method(each.method)
            elif isinstance(each, ReadState) and self.states[each.state].state.names:
                self.states[each.state].state.read("cache")
        for thread in threads:
            thread.join()
        for fault in faults:
            raise fault
        for place in touched.values():
            for method in METHODS:
                if any(isinstance(each, Unload) and each.method == method for each in step.meanwhile):
                    place.loaded.pop(method, None)
                self.note_loaded(place, method, {})
        for thread, calls in enumerate(step.calls):
            for call in calls:
                if METHODS[call.method].has_state and call.module in touched and not call.wrong:
                    values = self.values_beside(call, thread, len(step.calls))
                    state = touched[call.module].state
                    if profile_of(call.method, len(values[0]), call.guards[-1] if call.guards else "auto") is not None:
                        assert state.cache is not None
                        _, state.cache = oracle.cached(*values, state.cache)

    def values_beside(self, call: Call, thread: int, threads: int) -> list[Array]:
        values = [
            oracle.argument(call.method, index, call.rows, argument.value)
            for index, argument in enumerate(call.arguments)
        ]
        if METHODS[call.method].has_state:
            values[1] = thread + threads * (np.arange(call.rows, dtype=np.int64) + call.arguments[1].value % 2)
        return values

    def call_beside_others(self, place: Place, call: Call, thread: int, threads: int) -> None:
        values = self.values_beside(call, thread, threads)
        request = call.guards[-1] if call.guards else "auto"
        guards = list(call.guards) or ["auto"]
        given = [wrong(value, call.wrong) if index == 0 else value.copy() for index, value in enumerate(values)]
        if call.wrong == "missing":
            given.pop()
        refused = bool(call.wrong) or profile_of(call.method, len(values[0]), request) is None
        for _ in range(call.times):
            try:
                outputs = self.execute(place, call, given, guards)  # type: ignore[arg-type]
            except ValueError:
                if not refused:
                    raise
                continue
            if refused:
                raise FaultError(f"{call} was not refused")
            if not METHODS[call.method].has_state:
                for output, wanted in zip(outputs, self.results(place, call.method, values), strict=True):
                    expect_equal(output, wanted, f"{call} on a thread")

    # The end.

    def end(self) -> None:
        for place in self.places.values():
            self.end_graphs(place)
        if self._device:
            self.run_all()
            self.check()
        for number, state in enumerate(self.states):
            self.do(ReadState(number))
            del state
        clear_profiling()
        self.places.clear()
        self.check()
        self.held.clear()
        self.states.clear()
        for fixed in self.fixed.values():
            fixed.memory.free()
        self.fixed.clear()
        if self._device:
            if self.pool:
                self.on_thread(True, self._device.run_own)
            self._device.run_own()
            self._device.end()
        if self.pool:
            self.pool.shutdown()
        self.check()


def device_value(device: Device, capsule: Any, expected: Array) -> Array:
    return device.peek(in_capsule(capsule).data, expected.shape, expected.dtype)


def wrong(value: Array, how: str) -> Array:
    if how == "dtype":
        return value.astype(np.float64)
    if how == "rank":
        return value[..., None]
    return np.concatenate([value, value], 1) if how == "width" else value
