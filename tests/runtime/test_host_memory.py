"""Host memory that a program plans is page-locked when an engine first copies from or to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fakes.python_engine import FakeCuda
from runtime.device_programs import Case, Load, doubled, large

from executorch_tensorrt import Module

VALUES = np.arange(8 * 4, dtype=np.float32).reshape(8, 4)


def assert_doubles(module: Module, values: np.ndarray = VALUES) -> None:
    np.testing.assert_array_equal(module.forward(values)[0], 2 * values)


def named(log: list[str], *names: str) -> list[str]:
    return [line.split()[0] for line in log if line.split()[0] in names]


def test_first_call_locks_it_and_no_copy_is_staged(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(large(), optimization_profile="auto")
    cuda.take_log()
    assert_doubles(module)
    assert named(cuda.take_log(), "HostRegister", "MallocHost") == ["HostRegister"]
    for rows in (1, 8192, 8):
        assert_doubles(module, np.full((rows, 4), rows, np.float32))
    log = cuda.take_log()
    assert named(log, "HostRegister", "MallocHost", "PointerGetAttributes") == []
    assert named(log, "MemcpyAsync") == ["MemcpyAsync"] * 6


def test_memory_is_unlocked_before_it_is_freed(cuda: FakeCuda, load: Load) -> None:
    before = cuda.allocations()
    module, _ = load(large(), optimization_profile="auto")
    for _ in range(2):
        assert_doubles(module)
        cuda.take_log()
        module.unload_method("forward")
        assert named(cuda.take_log(), "HostUnregister") == ["HostUnregister"]
        assert cuda.allocations() == before
    assert_doubles(module)
    cuda.take_log()
    del module
    assert named(cuda.take_log(), "HostUnregister") == ["HostUnregister"]


def test_memory_that_cannot_be_locked_is_staged(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(large(), optimization_profile="auto")
    cuda.fail("cudaHostRegister", 2)
    cuda.take_log()
    for _ in range(2):
        assert_doubles(module)
    assert named(cuda.take_log(), "HostRegister", "MallocHost") == ["HostRegister", "MallocHost"]
    del module
    assert "HostUnregister" not in cuda.take_log()


@pytest.mark.parametrize("case", [lambda: doubled("host"), lambda: large("device")], ids=["small", "on the device"])
def test_other_programs_lock_nothing(case: Callable[[], Case], cuda: FakeCuda, load: Load) -> None:
    module, _ = load(case(), optimization_profile="auto")
    values = VALUES[:4]
    np.testing.assert_array_equal(module.forward(values)[0], 2 * values)
    assert "HostRegister" not in {line.split()[0] for line in cuda.take_log()}
