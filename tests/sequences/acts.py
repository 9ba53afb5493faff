"""Steps that are no calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from sequences import oracle
from sequences.captures import end_graphs
from sequences.held import (
    Held,
    Place,
    device_value,
    expect_equal,
)
from sequences.oracle import Array
from sequences.running import FaultError
from sequences.steps import (
    Busy,
    Drop,
    Failure,
    Load,
    New,
    Read,
    ReadState,
    Replace,
    ResetState,
    Run,
    SetLevel,
    Unload,
    WriteState,
)
from sequences.world import World, do

from executorch_tensorrt import (
    CudaStreamGuard,
    DeviceArray,
    EngineState,
    Module,
)
from executorch_tensorrt.profiling import clear_profiling, set_profiling


@do.register
def _(step: New, world: World) -> None:
    before = world.places.pop(step.module, None)
    if before:
        end_graphs(world, before)
        if step.garbage:
            cycle: list[Any] = [before.module]
            cycle.append(cycle)
            del cycle
    del before
    options = {key: value for key, value in vars(step.options).items() if value is not None}
    state = world.states[step.state]
    world.places[step.module] = Place(Module(world.program, state=state.state, **options), state, options)


@do.register
def _(step: Load, world: World) -> None:
    place = world.places.get(step.module)
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
    with world.failing(step.fail) as happened:
        try:
            place.module.load_method(step.method, **options)
        except BaseException as raised:
            error = raised.with_traceback(None)
    world.accept(error, happened, "loading")
    world.note_loaded(place, step.method, options)


@do.register
def _(step: Unload, world: World) -> None:
    place = world.places.get(step.module)
    if place is None:
        return
    end_graphs(world, place)
    was = place.module.unload_method(step.method)
    if was != (step.method in place.loaded):
        raise FaultError(f"unloading: got {was}, wanted {not was}")
    place.loaded.pop(step.method, None)


@do.register
def _(step: SetLevel, world: World) -> None:
    world.level = step.level
    clear_profiling() if step.level is None else set_profiling(step.level)


@do.register
def _(step: Run, world: World) -> None:
    world.run_stream(step.stream)


@do.register
def _(step: Busy, world: World) -> None:
    world.device.busy(step.stream)


@do.register
def _(step: Replace, world: World) -> None:
    world.run_stream(step.stream)
    world.device.replace_stream(step.stream)


@do.register
def _(step: Drop, world: World) -> None:
    world.held.pop((step.number, step.output), None)


@do.register
def _(step: Read, world: World) -> None:
    held = world.held.get((step.number, step.output))
    if held is None or not isinstance(held.array, DeviceArray):
        return
    got = world.on_thread(step.on_thread, lambda: read(world, held, step.way, step.stream))
    expect_equal(got, held.expected, f"output {step.output} of call {step.number}, read")


def read(world: World, held: Held, way: str, stream: int) -> Array:
    with ExitStack() as guards:
        if stream:
            guards.enter_context(CudaStreamGuard(world.device.stream(stream)))
        if way == "numpy":
            return held.array.numpy()
        if way == "dlpack":
            capsule = held.array.__dlpack__(stream=world.dlpack_stream(stream))
            world.run_stream(stream) if stream else world.device.run_own()
            return device_value(world.device, capsule, held.expected)
        return Held(held.array, held.expected, held.engine, 0, True).value(world.device)


@do.register
def _(step: ReadState, world: World) -> None:
    state = world.states[step.state]
    if not state.state.names:
        return
    value = None
    error = None
    with world.failing(step.fail) as happened:
        try:
            value = state.state.read("cache")
        except BaseException as raised:
            error = raised.with_traceback(None)
    world.accept(error, happened, "reading the state")
    if value is not None and state.cache is not None:
        expect_equal(value, state.cache, f"state {step.state}")


@do.register
def _(step: WriteState, world: World) -> None:
    value = oracle.floats(oracle.POSITIONS, step.value)
    change_state(world, step.state, step.fail, value, lambda state: state.write("cache", value))


@do.register
def _(step: ResetState, world: World) -> None:
    value = np.zeros((oracle.POSITIONS, oracle.WIDTH), np.float32)
    change_state(world, step.state, step.fail, value, lambda state: state.reset())


def change_state(
    world: World, number: int, failure: Failure | None, value: Array, change: Callable[[EngineState], None]
) -> None:
    state = world.states[number]
    if not state.state.names:
        return
    error = None
    with world.failing(failure) as happened:
        try:
            change(state.state)
        except BaseException as raised:
            error = raised.with_traceback(None)
    world.accept(error, happened, "changing the state")
    if error:
        change(state.state)
    state.cache = value
