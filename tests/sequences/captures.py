"""Graphs of the caller's, in which calls take part."""

from __future__ import annotations

from typing import Any

from sequences import oracle
from sequences.calls import execute
from sequences.held import (
    CallersGraph,
    Held,
    Place,
    expect_equal,
    profile_of,
)
from sequences.running import FaultError
from sequences.steps import (
    Capture,
    EndGraph,
    Launch,
)
from sequences.world import World, do


@do.register
def _(step: Capture, world: World) -> None:
    place = world.places.get(step.module)
    if place is None:
        return
    request = step.guards[-1] if step.guards else None
    loaded = place.loaded.get("plain")
    if request is None:
        request = loaded.request if loaded else place.options.get("optimization_profile")
    if profile_of("plain", step.rows, request) is None:
        return
    values = oracle.floats(step.rows, step.value)
    memory = world.device.memory(values, "moved")
    arguments, guards = [memory.argument], list(step.guards)
    error: BaseException | None = None
    for _ in range(2):  # a call that is replayed does not prepare for one that is captured; the next one is not
        if step.prepared:
            execute(world, place, step, arguments, guards)
            world.note_loaded(place, "plain", {})
        outputs: list[Any] = []
        world.device.begin_capture(step.stream)
        try:
            outputs += execute(world, place, step, arguments, guards)
            error = None
        except BaseException as raised:
            error = raised.with_traceback(None)
        finally:
            graph = world.device.end_capture(step.stream)
            world.note_loaded(place, "plain", {})
        if error is None:
            break
        world.device.end_graph(graph)
    if error is not None:
        level = world.level or (place.loaded["plain"].level if "plain" in place.loaded else None)
        world.run_stream(step.stream)
        memory.free()
        if not isinstance(error, ValueError) or (step.prepared and level != "layers"):
            raise FaultError(f"a call that takes part in a capture: got {error!r}")
        return
    (output,) = outputs
    held = Held(output, oracle.plain(values)[0], place.loaded.get("plain"), step.stream, False)
    world.graphs[step.number] = CallersGraph(graph, place, memory, step.rows, held)
    world.run_stream(step.stream)
    held.ready = False


@do.register
def _(step: Launch, world: World) -> None:
    launched = world.graphs.get(step.number)
    if launched is None:
        return
    world.run_all()
    check_graph(world, launched)
    values = oracle.floats(launched.rows, step.value)
    launched.memory.write(values)
    world.device.launch(launched.graph, step.stream)
    launched.held.expected = oracle.plain(values)[0]
    launched.held.stream, launched.held.ready = step.stream, False
    launched.held.way = "launched"


def check_graph(world: World, launched: CallersGraph) -> None:
    if launched.held.way == "launched" and launched.held.ready:
        expect_equal(launched.held.value(world.device_if_any), launched.held.expected, "output of a graph")


@do.register
def _(step: EndGraph, world: World) -> None:
    launched = world.graphs.pop(step.number, None)
    if launched is None:
        return
    world.run_stream(launched.held.stream)
    launched.held.ready = True
    check_graph(world, launched)
    world.device.end_graph(launched.graph)
    launched.memory.free()


def end_graphs(world: World, place: Place) -> None:
    for number in [number for number, graph in world.graphs.items() if graph.place is place]:
        do(EndGraph(number), world)
