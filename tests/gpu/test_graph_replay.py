"""Calls that are replayed as CUDA graphs give what queued calls give."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu.cuda import Stream, free_memory, to_device, to_host
from gpu.prepared import Case

from executorch_tensorrt import CudaStreamGuard, Module, OptimizationProfileGuard

Cases = Callable[[str], Case]


def mixed_inputs(case: Case, sizes: list[int]) -> dict[int, Any]:
    whole = case.calls["largest"].inputs[0]
    return {size: to_device(whole[:size]) for size in sizes}


def run(module: Module, array: Any, profile: int) -> bytes:
    with OptimizationProfileGuard(profile):
        (output,) = module.forward(array)
    return to_host(output).tobytes()


def test_replayed_calls_are_bit_equal_over_profiles_and_shapes(case: Cases) -> None:
    program = case("mlp")
    arrays = mixed_inputs(program, [1, 2, 7, 64, 200])
    plain, replaying = Module(program.path), Module(program.path, use_cuda_graphs=True)
    choices = random.Random(0)
    calls = [(size, profile) for size in arrays for profile in (0, 1) if size == 1 or profile]
    expected = {(size, profile): run(plain, arrays[size], profile) for size, profile in calls}
    for _ in range(1000):
        size, profile = choices.choice(sorted(expected))
        assert run(replaying, arrays[size], profile) == expected[size, profile]


def test_more_shapes_than_graphs_are_kept(case: Cases) -> None:
    program = case("mlp")
    arrays = mixed_inputs(program, list(range(1, 60, 2)))
    plain, replaying = Module(program.path), Module(program.path, use_cuda_graphs=True)
    for _ in range(3):
        for array in arrays.values():
            assert run(replaying, array, 1) == run(plain, array, 1)


def test_new_content_is_seen(case: Cases) -> None:
    """A graph reads what lies at its addresses when it runs."""
    program = case("mlp")
    module = Module(program.path, use_cuda_graphs=True)
    one = program.calls["first"].inputs[0]
    for step in range(6):
        array = (one * (step + 1)).astype(np.float32)
        (host,) = module.forward(array)  # staged: the same addresses every time
        (expected,) = Module(program.path).forward(array)
        np.testing.assert_array_equal(host, expected)


def test_two_modules_in_two_threads(case: Cases) -> None:
    program = case("mlp")
    failures: list[BaseException] = []

    def work(profile: int, size: int) -> None:
        try:
            module, stream = Module(program.path, use_cuda_graphs=True), Stream()
            array = mixed_inputs(program, [size])[size]
            with CudaStreamGuard(stream.handle), OptimizationProfileGuard(profile):
                kept = [module.forward(array)[0] for _ in range(50)]
                stream.synchronize()
                assert len({to_host(output).tobytes() for output in kept}) == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=arguments) for arguments in ((0, 1), (1, 33))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_decode_loop_feeds_its_outputs_back(case: Cases) -> None:
    program = case("mlp")
    outputs: list[bytes] = []
    for graphs in (False, True):
        module = Module(program.path, use_cuda_graphs=graphs)
        state = to_device(program.calls["first"].inputs[0])
        for _ in range(256):
            (state,) = module.forward(state)
        outputs.append(to_host(state).tobytes())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("level", ["off", "phases", "layers"])
def test_levels_do_not_change_results(level: Any, case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    module = Module(program.path, optimization_profile="auto", use_cuda_graphs=True, profile_level=level)
    for _ in range(5):
        values.assert_is([to_host(output) for output in module.forward(to_device(values.inputs[0]))])


def test_reload_and_growth_forget_graphs(case: Cases) -> None:
    """The larger optimization profile takes other activation memory, and a reload takes all anew."""
    program = case("mlp")
    arrays = mixed_inputs(program, [1, 512])
    plain, module = Module(program.path), Module(program.path, use_cuda_graphs=True)
    for _ in range(3):
        for size, profile in ((1, 0), (512, 1), (1, 0)):
            for _ in range(4):
                assert run(module, arrays[size], profile) == run(plain, arrays[size], profile)
        module.unload_method()


def test_steady_replay_takes_no_more_memory(case: Cases) -> None:
    program = case("mlp")
    module = Module(program.path, use_cuda_graphs=True)
    array = to_device(program.calls["first"].inputs[0])
    for _ in range(5):
        module.forward(array)
    before = free_memory()
    for _ in range(200):
        module.forward(array)
    assert free_memory() >= before


def test_addresses_that_never_come_again(case: Cases) -> None:
    """They are served by copies to and from memory that stays; the caller gets its own memory all the same."""
    program = case("mlp")
    plain, module = Module(program.path), Module(program.path, use_cuda_graphs=True)
    one = program.calls["first"].inputs[0]
    inputs = [to_device(one * (step + 1)) for step in range(40)]
    outputs = [module.forward(array)[0] for array in inputs]
    for array, output in zip(inputs, outputs, strict=True):
        assert to_host(output).tobytes() == to_host(plain.forward(array)[0]).tobytes()
