"""Caches that engines own: on the device, in two blocks that change places with each call, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gpu.cuda import Stream, to_device, to_host
from gpu.prepared import Case

from executorch_tensorrt import CudaStreamGuard, Module

Cases = Callable[[str], Case]

STEPS = 256
CACHES = ["keys", "values"]


def rows_of(case: Case) -> list[tuple[Any, Any]]:
    """The largest call's rows with their positions, one by one on the device."""
    x, positions = case.calls["largest"].inputs
    return [(to_device(x[step : step + 1]), to_device(positions[step : step + 1])) for step in range(STEPS)]


def decoded(module: Module, rows: Sequence[tuple[Any, Any]], method: str = "forward") -> list[np.ndarray[Any, Any]]:
    """The outputs of steps that are queued one behind the other."""
    stream = Stream()
    with CudaStreamGuard(stream.handle):
        outputs = [module.run_method(method, row)[0] for row in rows]
        stream.synchronize()
        return [to_host(output) for output in outputs]


def state_of(module: Module) -> list[bytes]:
    return [module.state.read(name).tobytes() for name in CACHES]


def test_decode_loop_with_engine_owned_state(case: Cases) -> None:
    """Queued and replayed steps are bit-equal, and about what one call on all rows gives."""
    program = case("decoder")
    rows = rows_of(program)
    plain, replaying = Module(program.path), Module(program.path, use_cuda_graphs=True)
    expected, got = decoded(plain, rows), decoded(replaying, rows)
    assert [output.tobytes() for output in got] == [output.tobytes() for output in expected]
    assert state_of(replaying) == state_of(plain)
    program.calls["largest"].assert_is([np.concatenate(expected)])


@pytest.mark.parametrize("replay", [False, True])
def test_state_fed_by_hand_gives_the_same_steps(replay: bool, case: Cases) -> None:
    program = case("decoder")
    owner, fed = Module(program.path, use_cuda_graphs=replay), Module(program.path, use_cuda_graphs=replay)
    fed.load_method()
    owner.load_method()
    for row in rows_of(program)[:32]:
        for name in CACHES:
            fed.state.write(name, owner.state.read(name))
        (expected,), (got,) = owner.forward(*row), fed.forward(*row)
        assert to_host(got).tobytes() == to_host(expected).tobytes()
        assert state_of(fed) == state_of(owner)


def test_steps_from_host_arrays_are_the_same(case: Cases) -> None:
    program = case("decoder")
    x, positions = program.calls["largest"].inputs
    module = Module(program.path, use_cuda_graphs=True)
    host = [module.forward(x[step : step + 1], positions[step : step + 1])[0] for step in range(32)]
    device = decoded(Module(program.path), rows_of(program)[:32])
    assert [output.tobytes() for output in host] == [output.tobytes() for output in device]


def test_profiles_of_one_engine_share_the_cache(case: Cases) -> None:
    program = case("decoder")
    largest = program.calls["largest"]
    module = Module(program.path, optimization_profile="auto", use_cuda_graphs=True)
    x, positions = (to_device(array[:100]) for array in largest.inputs)
    (prefilled,) = module.forward(x, positions)
    outputs = [to_host(prefilled), *decoded(module, rows_of(program)[100:])]
    largest.assert_is([np.concatenate(outputs)])


@pytest.mark.parametrize("replay", [False, True])
def test_methods_share_the_cache_over_streams(replay: bool, case: Cases) -> None:
    """The device orders them: nothing waits between a prefill on one stream and the steps on another."""
    program = case("methods")
    largest = program.calls["largest"]
    rows = rows_of(program)
    module = Module(program.path, use_cuda_graphs=replay)
    first, second = Stream(), Stream()
    x, positions = (to_device(array[:100]) for array in largest.inputs)
    for _ in range(5):  # in the end, all are replayed
        with CudaStreamGuard(first.handle):
            (prefilled,) = module.run_method("prefill", [x, positions])
        with CudaStreamGuard(second.handle):
            steps = [module.run_method("decode", row)[0] for row in rows[100:]]
        second.synchronize()
        largest.assert_is([np.concatenate([to_host(prefilled), *map(to_host, steps)])])
        del prefilled, steps
    module.state.reset()
    assert not np.any(module.state.read("keys"))


def test_state_is_read_written_and_reset_behind_queued_steps(case: Cases) -> None:
    program = case("decoder")
    rows = rows_of(program)
    module, stream = Module(program.path), Stream()
    with CudaStreamGuard(stream.handle):
        for row in rows[:40]:
            module.forward(*row)
        saved = {name: module.state.read(name) for name in CACHES}
        (expected,) = module.forward(*rows[40])
        module.state.reset()
        assert not any(np.any(module.state.read(name)) for name in CACHES)
        for name, value in saved.items():
            module.state.write(name, value)
        (got,) = module.forward(*rows[40])
        stream.synchronize()
    assert to_host(got).tobytes() == to_host(expected).tobytes()


def test_refused_call_leaves_the_state(case: Cases) -> None:
    program = case("decoder")
    rows = rows_of(program)
    module = Module(program.path)
    decoded(module, rows[:8])
    before = state_of(module)
    with pytest.raises(ValueError, match="allowed 1..1 in profile 0"):
        module.forward(*(array[:2] for array in program.calls["largest"].inputs))
    assert state_of(module) == before
