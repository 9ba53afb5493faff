"""Inputs and outputs in device memory, and calls that return before their work is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu.cuda import Stream, free_memory, lies_on_device, to_device, to_host
from gpu.prepared import CALLS, ON_DEVICE, Call, Case

from executorch_tensorrt import CudaStreamGuard, Module, OptimizationProfileGuard

Cases = Callable[[str], Case]

LEVELS = ("off", "delegate", "phases", "layers")


def on_device(values: Call) -> list[Any]:
    return [to_device(array) for array in values.inputs]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ON_DEVICE)
def test_device_arrays_give_device_arrays(name: str, call: str, case: Cases) -> None:
    program = case(name)
    values = program.calls[call]
    module = Module(program.path, optimization_profile="auto")
    outputs = module.forward(*on_device(values))
    assert all(map(lies_on_device, outputs))
    values.assert_is([to_host(output) for output in outputs])


def test_device_output_gives_a_host_copy(case: Cases) -> None:
    """It waits for the stream that the guard names."""
    program = case("mlp")
    values, stream = program.calls["second"], Stream()
    module, inputs = Module(program.path, optimization_profile="auto"), on_device(values)
    with CudaStreamGuard(stream.handle):
        (output,) = module.forward(*inputs)
        values.assert_is([output.numpy()])
    assert output.__dlpack_device__() == (2, 0)


def test_device_arrays_are_refused_where_the_program_has_host_memory(case: Cases) -> None:
    program = case("block")
    values = program.calls["first"]
    module = Module(program.path)
    with pytest.raises(ValueError, match='export with device="cuda:0"'):
        module.forward(*on_device(values))
    values.assert_is(module.forward(*values.inputs))


def test_host_arrays_and_device_arrays_take_turns(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    module = Module(program.path, optimization_profile="auto")
    for inputs in (values.inputs, on_device(values), values.inputs, on_device(values)):
        values.assert_is([to_host(output) for output in module.forward(*inputs)])


def test_outputs_are_the_callers_to_keep(case: Cases) -> None:
    """A later call with other inputs writes elsewhere."""
    program = case("mlp")
    first, second = program.calls["first"], program.calls["second"]
    module = Module(program.path, optimization_profile="auto")
    kept = module.forward(*on_device(first))
    module.forward(*on_device(second))
    first.assert_is([to_host(output) for output in kept])


def test_output_of_a_call_is_input_of_the_next(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    module = Module(program.path, optimization_profile="auto")
    chained, host = on_device(values), values.inputs
    for _ in range(3):
        chained, host = module.forward(*chained), module.forward(*host)
    np.testing.assert_array_equal(to_host(chained[0]), host[0])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pin", ["default", "pinned", "auto"])
def test_call_returns_while_the_callers_stream_is_held(pin: str, level: Any, case: Cases) -> None:
    program = case("mlp")
    values = program.calls["first" if pin == "default" else "second"]
    module = Module(program.path, optimization_profile="auto" if pin == "auto" else None, profile_level=level)
    inputs, stream = on_device(values), Stream()

    def call() -> list[Any]:
        if pin != "pinned":
            return module.forward(*inputs)
        with OptimizationProfileGuard(1):
            return module.forward(*inputs)

    with CudaStreamGuard(stream.handle):
        call()
        stream.synchronize()
        with stream.held():
            outputs = call()
            assert stream.is_busy()
    values.assert_is([to_host(output) for output in outputs])


def test_calls_on_a_held_stream_queue_up(case: Cases) -> None:
    """Contexts of both profiles share their memory; the work is in order all the same."""
    program = case("mlp")
    calls = [program.calls["first"], program.calls["second"]]
    module = Module(program.path, optimization_profile="auto")
    inputs, stream = [on_device(values) for values in calls], Stream()
    with CudaStreamGuard(stream.handle):
        for arrays in inputs:
            module.forward(*arrays)
        stream.synchronize()
        with stream.held():
            outputs = [(calls[index], module.forward(*inputs[index])) for index in (0, 1, 0, 1, 1, 0)]
    for values, arrays in outputs:
        values.assert_is([to_host(array) for array in arrays])


def test_caller_may_change_streams(case: Cases) -> None:
    """What is in flight on one stream is waited for on the other."""
    program = case("mlp")
    values = program.calls["second"]
    module = Module(program.path, optimization_profile="auto")
    inputs, streams = on_device(values), [Stream(), Stream()]
    for _ in range(4):
        for stream in streams:
            with CudaStreamGuard(stream.handle):
                outputs = module.forward(*inputs)
            stream.synchronize()
            values.assert_is([to_host(output) for output in outputs])


def test_call_without_a_named_stream_is_done_when_it_returns(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["largest"]
    module = Module(program.path, optimization_profile="auto")
    for _ in range(5):
        values.assert_is([to_host(output) for output in module.forward(*on_device(values))])


def test_module_may_end_with_work_in_flight(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    module = Module(program.path, optimization_profile="auto")
    inputs, stream = on_device(values), Stream()
    with CudaStreamGuard(stream.handle):
        outputs = module.forward(*inputs)
        del module
    stream.synchronize()
    values.assert_is([to_host(output) for output in outputs])


def test_threads_have_streams_of_their_own(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            module, stream = Module(program.path, optimization_profile="auto"), Stream()
            inputs = on_device(values)
            with CudaStreamGuard(stream.handle):
                for _ in range(10):
                    outputs = module.forward(*inputs)
                    stream.synchronize()
                    values.assert_is([to_host(output) for output in outputs])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_steady_calls_take_no_more_device_memory(case: Cases) -> None:
    program = case("mlp")
    module = Module(program.path, optimization_profile="auto")

    def round_of_calls() -> None:
        for call in CALLS:
            module.forward(*on_device(program.calls[call]))
            module.forward(*program.calls[call].inputs)

    round_of_calls()
    before = free_memory()
    for _ in range(20):
        round_of_calls()
    assert free_memory() >= before


def test_ended_modules_leave_no_device_memory(case: Cases) -> None:
    program = case("block")

    def one_module() -> int:
        module = Module(program.path, optimization_profile="auto")
        for call in CALLS:
            module.forward(*program.calls[call].inputs)
        del module
        return free_memory()

    one_module()
    before = one_module()
    assert [one_module() for _ in range(3)][-1] >= before
