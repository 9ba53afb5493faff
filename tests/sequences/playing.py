"""Plays a sequence."""

from __future__ import annotations

import gc
from pathlib import Path

from sequences import acts, calls, captures, threads  # noqa: F401 - they say how steps are played
from sequences.captures import end_graphs
from sequences.device import Device
from sequences.running import FaultError
from sequences.steps import ReadState, Sequence, Step
from sequences.world import World, do

from executorch_tensorrt.profiling import clear_profiling


def play(sequence: Sequence, program: Path, device: Device | None) -> None:
    """Play all steps.

    Raises:
        FaultError: something is not as it must be.
    """
    before = device.alive() if device else None
    world = World(program, device)
    at: Step | str = "the beginning"
    try:
        for at in (*sequence.modules, *sequence.steps):
            do(at, world)
            world.check()
        at = "the end"
        end(world)
        if device and device.alive() != before:
            gc.collect()
            if device.alive() != before:
                raise FaultError(f"left alive: got {device.alive()}, wanted {before}")
    except FaultError as fault:
        raise FaultError(f"at {at}: {fault}") from None


def end(world: World) -> None:
    for place in world.places.values():
        end_graphs(world, place)
    if world.device_if_any:
        world.run_all()
        world.check()
    for number in range(len(world.states)):
        do(ReadState(number), world)
    clear_profiling()
    world.places.clear()
    world.check()
    world.held.clear()
    world.states.clear()
    for fixed in world.fixed.values():
        fixed.memory.free()
    world.fixed.clear()
    if world.device_if_any:
        if world.pool:
            world.on_thread(True, world.device_if_any.run_own)
        world.device_if_any.run_own()
        world.device_if_any.end()
    if world.pool:
        world.pool.shutdown()
    world.check()
