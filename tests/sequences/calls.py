"""Calls, and what becomes of their outputs."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from sequences import oracle
from sequences.device import Memory
from sequences.held import (
    Fixed,
    Held,
    Place,
    expect_equal,
    profile_of,
    wrong,
)
from sequences.oracle import METHODS, Array
from sequences.running import FaultError
from sequences.steps import (
    Argument,
    Call,
    Capture,
    Request,
)
from sequences.world import World, do

from executorch_tensorrt import (
    CudaStreamGuard,
    OptimizationProfileGuard,
)


@do.register
def _(step: Call, world: World) -> None:
    place = world.places.get(step.module)
    if place is None:
        return
    for launched in world.graphs.values():  # the order of its launches is the caller's
        if launched.place is place and not launched.held.ready:
            world.run_stream(launched.held.stream)
    given = arguments_of(world, step, place)
    if given is None:
        return
    values, arguments, moved = given
    outputs: list[Any] = []
    error: BaseException | None = None
    expected: list[Array] = []
    requests, done = list(step.guards), 0
    failing = 0 if step.number % 2 else step.times - 1
    for repeat in range(step.times):
        guards = requests[: max(0, len(requests) - repeat)]
        del outputs[:]
        enqueued = world.device_if_any.enqueued() if world.device_if_any else 0
        with world.failing(step.fail if repeat == failing else None) as happened:
            try:
                outputs += world.on_thread(step.on_thread, partial(execute, world, place, step, arguments, guards))
            except BaseException as raised:
                error = raised.with_traceback(None)
        world.note_loaded(place, step.method, {})
        loaded = place.loaded.get(step.method)
        default = loaded.request if loaded else place.options.get("optimization_profile")
        profile = profile_of(step.method, len(values[0]), guards[-1] if guards else default)
        if step.wrong or profile is None:
            accept_refusal(world, error, happened, enqueued)
            error = error or ValueError()
        else:
            world.accept(error, happened, "a call")
        if error:
            settle_state(world, place, step.method, values, happened)
            break
        selected = [selection.profile for selection in place.module.last_selections]
        if selected != [profile]:
            raise FaultError(f"optimization profile: got {selected}, wanted {profile}")
        expected = results(world, place, step.method, values)
        done += 1
    if error is None:
        keep(world, step, place, outputs, expected, arguments)
    release(world, step, moved, arguments, done > 0)
    del outputs[:], arguments[:]


def settle_state(world: World, place: Place, method: str, values: list[Array], happened: list[Any]) -> None:
    """Where a call fails behind its engine, at the copy of an output, the state is that of after it."""
    if not happened or not METHODS[method].has_state or not place.state.state.names:
        return
    assert place.state.cache is not None
    found = place.state.state.read("cache")
    after = oracle.cached(*values, place.state.cache)[1]
    expect_equal(found, after if np.array_equal(found, after) else place.state.cache, "state after a failure")
    place.state.cache = found


def accept_refusal(world: World, error: BaseException | None, happened: list[Any], enqueued: int) -> None:
    if happened and error is not None:
        world.accept(error, happened, "a call")
    elif not isinstance(error, ValueError):
        raise FaultError(f"a call that must be refused: got {error!r}, wanted ValueError")
    elif world.device_if_any and world.device_if_any.enqueued() != enqueued:
        raise FaultError("a call that was refused has queued work")


def execute(world: World, place: Place, step: Call | Capture, arguments: list[Any], guards: list[Request]) -> list[Any]:
    with ExitStack() as entered:
        if step.stream:
            entered.enter_context(CudaStreamGuard(world.device.stream(step.stream)))
        for request in guards:
            made = OptimizationProfileGuard.auto() if request == "auto" else OptimizationProfileGuard(request)
            entered.enter_context(made)
        return place.module.run_method(step.method if isinstance(step, Call) else "plain", arguments)


def results(world: World, place: Place, method: str, values: list[Array]) -> list[Array]:
    if not METHODS[method].has_state:
        return (oracle.plain if method == "plain" else oracle.typed)(*values)
    assert place.state.cache is not None
    total, place.state.cache = oracle.cached(*values, place.state.cache)
    return [total]


def arguments_of(world: World, step: Call, place: Place) -> tuple[list[Array], list[Any], list[Memory]] | None:
    """What the arguments hold, what a call is given, and memory to free. Makes way for what the caller changes."""
    rows = step.rows
    for argument in step.arguments:
        if argument.place == "output":
            held = fed(world, argument, step, place)
            if held is None:
                return None
            rows = len(held.expected)
    values: list[Array] = []
    arguments: list[Any] = []
    moved: list[Memory] = []
    for index, argument in enumerate(step.arguments):
        value = oracle.argument(step.method, index, rows, argument.value)
        if argument.place == "output":
            held = fed(world, argument, step, place)
            assert held is not None
            value, given = held.expected, held.array
        elif argument.place == "fixed" and not step.wrong:
            fixed = fixed_array(world, step, index, argument)
            value = fixed.values[: value.size].reshape(value.shape)
            given = fixed.memory.view(value.shape)
        else:
            given_value = wrong(value, step.wrong) if index == 0 else value
            if argument.place == "host":
                given = given_value.copy()
            else:
                place_of = "moved" if argument.place == "fixed" else argument.place
                moved.append(world.device.memory(given_value, place_of))
                given = moved[-1].argument
        values.append(value)
        arguments.append(given)
    if step.wrong == "missing" or (step.wrong and step.arguments[0].place == "output"):
        arguments.pop()
    return values, arguments, moved


def fed(world: World, argument: Argument, step: Call, place: Place) -> Held | None:
    """An output of an earlier call that this one takes."""
    for (number, _), held in world.held.items():
        if number != argument.slot or not held.is_feedable or np.abs(held.expected).max() > oracle.LARGEST:
            continue
        return held
    return None


def kind_of(world: World, step: Call, index: int) -> str:
    return "floats" if index == 0 else "positions" if METHODS[step.method].has_state else "ids"


def fixed_array(world: World, step: Call, index: int, argument: Argument) -> Fixed:
    kind = kind_of(world, step, index)
    values = oracle.argument(step.method, index, 13, argument.value).reshape(-1)
    fixed = world.fixed.get((kind, argument.slot))
    if fixed is None:
        fixed = world.fixed[kind, argument.slot] = Fixed(world.device.memory(values, "moved"), values)
    elif argument.fill:
        for stream in sorted(fixed.readers):
            world.run_stream(stream)
        fixed.memory.write(values)
        fixed.values = values
    return fixed


def keep(
    world: World, step: Call, place: Place, outputs: list[Any], expected: list[Array], arguments: list[Any]
) -> None:
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
            expect_equal(held.value(world.device_if_any), wanted, what)
        if way:
            world.held[step.number, index] = kept(world, held, way, step)


def kept(world: World, held: Held, way: str, step: Call) -> Held:
    """As `way` says."""
    if isinstance(held.array, np.ndarray):
        return held
    if way == "numpy":
        copied = world.on_thread(step.on_thread, held.array.numpy)
        return Held(copied, held.expected, held.engine, 0, True, way)
    if way == "dlpack":
        held.capsule = held.array.__dlpack__(stream=world.dlpack_stream(step.stream))
    return held


def release(world: World, step: Call, moved: list[Memory], arguments: list[Any], is_queued: bool) -> None:
    """What the call may still read stays; the rest is the caller's again, who uses it."""
    for argument in arguments:
        if isinstance(argument, np.ndarray) and not any(argument is held.array for held in world.held.values()):
            argument.fill(77)
    if step.stream and is_queued:
        for index, argument in enumerate(step.arguments):
            if argument.place == "fixed" and not step.wrong:
                world.fixed[kind_of(world, step, index), argument.slot].readers.add(step.stream)
        world.flying.setdefault(step.stream, []).extend(moved)
    else:
        for memory in moved:
            memory.free()
