"""Which profile a call uses, seen through Module.last_selections, and the load option."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from models import mixed, rows, static_beside_dynamic

from executorch_tensorrt import Module, OptimizationProfileGuard


def used(module: Module) -> list[int]:
    return [selection.profile for selection in module.last_selections]


def test_auto_prefers_the_lowest_index_whatever_ran_before() -> None:
    module = Module(rows().buffer)
    with OptimizationProfileGuard.auto():
        for size, profile in [(64, 1), (8, 0), (9, 1), (4, 0), (64, 1), (1, 0)]:
            module.forward(torch.randn(size, 4))
            assert used(module) == [profile], size


def test_pinned_index_is_used_in_the_overlap() -> None:
    module = Module(rows().buffer)
    for index in (1, 0, 1):
        with OptimizationProfileGuard(index):
            module.forward(torch.randn(6, 4))
        assert used(module) == [index]
    module.forward(torch.randn(6, 4))
    assert used(module) == [0]


def test_every_engine_of_a_method_sees_one_request() -> None:
    module = Module(mixed().buffer)
    with OptimizationProfileGuard.auto():
        module.forward(torch.randn(20, 4), torch.randn(1, 4))
    assert used(module) == [1, 1]


def test_static_engine_stays_on_its_only_profile() -> None:
    module = Module(static_beside_dynamic().buffer)
    with OptimizationProfileGuard(1):
        module.forward(torch.randn(1, 4), torch.randn(20, 4))
    assert sorted(used(module)) == [0, 1]


def test_load_option_auto_serves_calls_without_a_guard() -> None:
    module = Module(rows().buffer, optimization_profile="auto")
    for size, profile in [(64, 1), (1, 0)]:
        module.forward(torch.randn(size, 4))
        assert used(module) == [profile]
    with OptimizationProfileGuard(1):
        module.forward(torch.randn(5, 4))
    assert used(module) == [1]


def test_load_option_index_serves_calls_without_a_guard() -> None:
    module = Module(rows().buffer)
    module.load_method("forward", optimization_profile=1)
    module.forward(torch.randn(5, 4))
    assert used(module) == [1]


@pytest.mark.parametrize("value", [-1, True, "1", 1.5, "AUTO"])
def test_load_option_refuses_what_is_no_profile(value: object) -> None:
    with pytest.raises(ValueError, match=r"optimization_profile: got .*, allowed 'auto' or an index of 0 or more"):
        Module(rows().buffer, optimization_profile=value)  # type: ignore[arg-type]


def test_load_option_past_the_end_is_an_error_of_the_call() -> None:
    module = Module(rows().buffer, optimization_profile=2)
    with pytest.raises(ValueError, match=r"got 2, allowed 0\.\.1"):
        module.forward(torch.randn(5, 4))


def test_options_of_a_loaded_method_are_fixed() -> None:
    module = Module(rows().buffer)
    assert not module.is_method_loaded()
    module.forward(torch.randn(5, 4))
    assert module.is_method_loaded()
    with pytest.raises(ValueError, match="already loaded"):
        module.load_method("forward", optimization_profile=1)


def test_index_past_the_end_names_the_engine_and_what_it_has() -> None:
    module = Module(rows().buffer)
    with (
        OptimizationProfileGuard(7),
        pytest.raises(ValueError, match=r"method 'forward', engine \w{12}: .*got 7, allowed 0\.\.1"),
    ):
        module.forward(torch.randn(5, 4))
    module.forward(torch.randn(5, 4))


def test_a_miss_says_which_profile_accepts_the_shapes() -> None:
    module = Module(rows().buffer)
    with pytest.raises(ValueError, match="dim 0: got 20, allowed") as caught:
        module.forward(torch.randn(20, 4))
    message = str(caught.value)
    assert "profile 0 accepts" in message
    assert "(1..8, 4)" in message
    assert "(4..64, 4)" in message
    assert "OptimizationProfileGuard(1)" in message
    with OptimizationProfileGuard(1):  # the advice works
        module.forward(torch.randn(20, 4))


def test_zero_rows_are_refused_by_every_profile() -> None:
    module = Module(rows().buffer)
    for guard in (OptimizationProfileGuard(0), OptimizationProfileGuard(1), OptimizationProfileGuard.auto()):
        with guard, pytest.raises(ValueError, match="profile"):
            module.forward(np.zeros((0, 4), np.float32))


def test_two_modules_on_two_threads_keep_their_own_pins() -> None:
    failures: list[str] = []
    barrier = threading.Barrier(2)

    def work(index: int, size: int) -> None:
        module = Module(rows().buffer)
        x = torch.randn(size, 4)
        expected = rows().eager(x)
        barrier.wait()
        with OptimizationProfileGuard(index):
            for _ in range(300):
                output = module.forward(x)
                if used(module) != [index] or not torch.allclose(output[0], expected[0], atol=1e-5):
                    failures.append(f"profile {index}: {module.last_selections}")

    threads = [threading.Thread(target=work, args=pair) for pair in ((0, 5), (1, 40))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_one_module_on_two_threads_is_serialised() -> None:
    module = Module(rows().buffer, optimization_profile="auto")
    failures: list[float] = []

    def work(size: int) -> None:
        x = torch.randn(size, 4)
        expected = rows().eager(x)[0]
        for _ in range(300):
            difference = (module.forward(x)[0] - expected).abs().max().item()
            if difference > 1e-5:
                failures.append(difference)

    threads = [threading.Thread(target=work, args=(size,)) for size in (3, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
