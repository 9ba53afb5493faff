"""Calls from several threads at once."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import numpy as np
from sequences import oracle
from sequences.calls import execute, results
from sequences.held import (
    Place,
    expect_equal,
    profile_of,
    wrong,
)
from sequences.oracle import METHODS, Array
from sequences.running import FaultError
from sequences.steps import (
    Call,
    Dump,
    ReadState,
    SetLevel,
    Threads,
    Unload,
)
from sequences.world import World, do


@do.register
def _(step: Dump, world: World) -> None:
    place = world.places.get(step.module)
    if place is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            place.module.write_etdump(Path(folder) / "events")
        except ValueError as error:
            if "no events" not in str(error):
                raise


@do.register
def _(step: Threads, world: World) -> None:
    """Rows of the cache that a thread writes are its own, so that what is there in the end has one answer."""
    faults: list[BaseException] = []
    start = threading.Barrier(len(step.calls) + 1)
    touched = {
        call.module: world.places[call.module] for calls in step.calls for call in calls if call.module in world.places
    }

    def work(thread: int, calls: tuple[Call, ...]) -> None:
        try:
            start.wait()
            for call in calls:
                place = touched.get(call.module)
                if place is not None:
                    call_beside_others(world, place, call, thread, len(step.calls))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(k, calls)) for k, calls in enumerate(step.calls)]
    for thread in threads:
        thread.start()
    start.wait()
    for each in step.meanwhile:
        if isinstance(each, SetLevel):
            do(each, world)
        elif isinstance(each, Unload) and each.module in touched:
            touched[each.module].module.unload_method(each.method)
        elif isinstance(each, ReadState) and world.states[each.state].state.names:
            world.states[each.state].state.read("cache")
    for thread in threads:
        thread.join()
    for fault in faults:
        raise fault
    unloads = [(touched.get(each.module), each.method) for each in step.meanwhile if isinstance(each, Unload)]
    for place in touched.values():
        for method in METHODS:
            if any(unloaded is place and name == method for unloaded, name in unloads):
                place.loaded.pop(method, None)
            world.note_loaded(place, method, {})
    for thread, calls in enumerate(step.calls):
        for call in calls:
            if METHODS[call.method].has_state and call.module in touched and not call.wrong:
                values = values_beside(world, call, thread, len(step.calls))
                state = touched[call.module].state
                if profile_of(call.method, len(values[0]), call.guards[-1] if call.guards else "auto") is not None:
                    assert state.cache is not None
                    _, state.cache = oracle.cached(*values, state.cache)


def values_beside(world: World, call: Call, thread: int, threads: int) -> list[Array]:
    values = [
        oracle.argument(call.method, index, call.rows, argument.value) for index, argument in enumerate(call.arguments)
    ]
    if METHODS[call.method].has_state:
        values[1] = thread + threads * (np.arange(call.rows, dtype=np.int64) + call.arguments[1].value % 2)
    return values


def call_beside_others(world: World, place: Place, call: Call, thread: int, threads: int) -> None:
    values = values_beside(world, call, thread, threads)
    request = call.guards[-1] if call.guards else "auto"
    guards = list(call.guards) or ["auto"]
    given = [wrong(value, call.wrong) if index == 0 else value.copy() for index, value in enumerate(values)]
    if call.wrong == "missing":
        given.pop()
    refused = bool(call.wrong) or profile_of(call.method, len(values[0]), request) is None
    for _ in range(call.times):
        try:
            outputs = execute(world, place, call, given, guards)  # type: ignore[arg-type]
        except ValueError:
            if not refused:
                raise
            continue
        if refused:
            raise FaultError(f"{call} was not refused")
        if not METHODS[call.method].has_state:
            for output, wanted in zip(outputs, results(world, place, call.method, values), strict=True):
                expect_equal(output, wanted, f"{call} on a thread")
