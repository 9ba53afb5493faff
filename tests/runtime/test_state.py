"""Buffers that engines own: kept between calls, shared by name, read, written and reset."""

from __future__ import annotations

import threading

import models
import numpy as np
import pytest

from executorch_tensorrt import EngineState, EngineStateGuard, Module, OptimizationProfileGuard


def put(module: Module, value: float, *positions: int, method: str = "forward") -> float:
    """Write rows of one value, and return what the cache adds up to in one column."""
    rows = np.full((len(positions), 4), value, np.float32)
    (total,) = module.run_method(method, [rows, np.array(positions)])
    assert np.all(total == total[0])
    return float(total[0])


def test_state_survives_a_change_of_profile() -> None:
    module = Module(models.cached_rows().buffer, optimization_profile="auto")
    assert [put(module, 1, 0, 1, 2), put(module, 5, 3), put(module, 0, 0, 1)] == [3, 8, 6]
    with OptimizationProfileGuard(0):
        assert put(module, 2, 31) == 8
    assert module.state.names == ["cache"]
    expected = np.zeros((32, 4), np.float32)
    expected[[2, 3, 31]] = [[1], [5], [2]]
    np.testing.assert_array_equal(module.state.read("cache"), expected)


def test_state_is_written_and_reset() -> None:
    module = Module(models.cached_rows().buffer)
    module.load_method()
    module.state.write("cache", np.full((32, 4), 2, np.float32))
    assert put(module, 0, 0) == 62
    module.state.reset()
    assert put(module, 1, 5) == 1


def test_state_outlives_unloading() -> None:
    module = Module(models.cached_rows().buffer)
    put(module, 3, 0)
    module.unload_method()
    assert put(module, 1, 1) == 4


def test_state_is_a_modules_own() -> None:
    one, other = Module(models.cached_rows().buffer), Module(models.cached_rows().buffer)
    put(one, 3, 0)
    assert put(other, 1, 1) == 1


def test_state_is_shared_by_modules_that_are_given_one() -> None:
    state = EngineState()
    one, other = (Module(models.cached_rows().buffer, state=state) for _ in range(2))
    put(one, 3, 0)
    assert put(other, 1, 1) == 4
    assert one.state is other.state is state


def test_state_is_shared_by_methods() -> None:
    module = Module(models.cached_methods())
    assert put(module, 1, 0, 1, 2, method="prefill") == 3
    assert put(module, 5, 3, method="decode") == 8
    assert put(module, 0, 0, 1, method="prefill") == 6


def test_state_guard_gives_a_state_to_the_stock_runtime() -> None:
    import torch
    from executorch.runtime import Runtime

    state = EngineState()
    program = Runtime.get().load_program(models.cached_methods())
    with EngineStateGuard(state):
        prefill, decode = (program.load_method(name) for name in ("prefill", "decode"))
    assert prefill is not None
    assert decode is not None
    prefill.execute([torch.ones(3, 4), torch.arange(3)])
    (total,) = decode.execute([torch.ones(1, 4), torch.tensor([3])])
    assert total.tolist() == [4, 4, 4, 4]
    assert state.read("cache").sum() == 16


def test_state_guard_ends_with_its_block() -> None:
    state = EngineState()
    with EngineStateGuard(state):
        pass
    Module(models.cached_rows().buffer).load_method()
    assert state.names == []


def test_state_guard_of_another_thread_is_not_seen() -> None:
    from executorch.runtime import Runtime

    state = EngineState()
    program = Runtime.get().load_program(models.cached_rows().buffer)
    with EngineStateGuard(state):
        thread = threading.Thread(target=program.load_method, args=("forward",))
        thread.start()
        thread.join()
    assert state.names == []


def test_state_is_as_before_after_a_call_that_was_refused() -> None:
    module = Module(models.cached_rows().buffer)
    put(module, 3, 0)
    with pytest.raises(ValueError, match="got 2, allowed 1..1 in profile 0"):
        put(module, 1, 1, 2)
    assert put(module, 1, 1) == 4


def test_state_refuses_wrong_names_and_values() -> None:
    module = Module(models.cached_rows().buffer)
    with pytest.raises(ValueError, match="unknown buffer: got 'cache', allowed none, for no loaded method"):
        module.state.read("cache")
    module.load_method()
    with pytest.raises(ValueError, match="unknown buffer: got 'k', allowed 'cache'"):
        module.state.read("k")
    with pytest.raises(ValueError, match=r"buffer 'cache': got float64 \(32, 4\), allowed float32 \(32, 4\)"):
        module.state.write("cache", np.zeros((32, 4)))
    with pytest.raises(ValueError, match=r"got float32 \(4, 32\), allowed float32 \(32, 4\)"):
        module.state.write("cache", np.zeros((4, 32), np.float32))


def test_state_shows_its_buffers() -> None:
    module = Module(models.cached_rows().buffer)
    assert repr(module.state) == "EngineState(names=[])"
    module.load_method()
    assert repr(module.state) == "EngineState(names=['cache'])"


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(TypeError, match="state: got str, allowed an EngineState, such as Module.state"):
        EngineStateGuard("kv")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="state: got dict, allowed an EngineState"):
        Module(models.cached_rows().buffer, state={})  # type: ignore[arg-type]


def test_state_serialises_methods_of_two_modules() -> None:
    state = EngineState()
    modules = [Module(models.cached_rows().buffer, state=state) for _ in range(2)]

    def fill(module: Module, first: int) -> None:
        for position in range(first, 32, 2):
            put(module, 1, position)

    threads = [threading.Thread(target=fill, args=(module, first)) for first, module in enumerate(modules)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.read("cache").sum() == 32 * 4
