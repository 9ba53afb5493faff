"""A machine with more than one GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from edited_programs import with_metadata
from gpu.cuda import call, device_count, free_memory, to_device
from gpu.prepared import Case

from executorch_tensorrt import ExecuTorchError, Module

Cases = Callable[[str], Case]


@pytest.fixture(autouse=True)
def _needs_two_gpus() -> None:
    if device_count() < 2:
        pytest.skip("one GPU: this needs two")


def current_device() -> int:
    device = ctypes.c_int()
    call("cudaGetDevice", ctypes.byref(device))
    return device.value


@contextmanager
def device(index: int) -> Iterator[None]:
    before = current_device()
    call("cudaSetDevice", index)
    try:
        yield
    finally:
        call("cudaSetDevice", before)


def test_callers_current_device_stays(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    with device(1):
        module = Module(program.path, optimization_profile="auto")
        values.assert_is(module.forward(*values.inputs))
        assert current_device() == 1
        module.unload_method()
        assert current_device() == 1


def test_array_of_another_device_is_refused(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["first"]
    module = Module(program.path)
    with device(1):
        elsewhere = [to_device(array) for array in values.inputs]
    with pytest.raises((ValueError, ExecuTorchError), match="another device: got 1, allowed 0"):
        module.forward(*elsewhere)
    values.assert_is(module.forward(*values.inputs))


def test_program_for_the_second_device_runs_there(case: Cases) -> None:
    program = case("block")
    moved = with_metadata(program.path.read_bytes(), lambda metadata: metadata.update(device_id=1))
    module = Module(moved, optimization_profile="auto")
    before = free_memory_of(1)
    for call_name in ("first", "second"):
        values = program.calls[call_name]
        values.assert_is(module.forward(*values.inputs))
    assert free_memory_of(1) < before
    assert current_device() == 0


def free_memory_of(index: int) -> int:
    with device(index):
        return free_memory()
