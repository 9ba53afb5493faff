"""OptimizationProfileGuard: a request of the calling thread, whatever runs the program."""

from __future__ import annotations

import threading

import pytest
import torch
from executorch.runtime import Runtime
from models import decode_first, mixed, rows, static_beside_dynamic

from executorch_tensorrt import Module, OptimizationProfileGuard, _native


def request() -> str:
    return repr(_native.current_request())


def test_guard_nests_and_restores() -> None:
    assert request() == "default"
    with OptimizationProfileGuard(1):
        assert request() == "pinned(1)"
        with OptimizationProfileGuard.auto():
            assert request() == "auto"
            with OptimizationProfileGuard(0):
                assert request() == "pinned(0)"
            assert request() == "auto"
        assert request() == "pinned(1)"
    assert request() == "default"


def test_guard_restores_when_an_exception_passes() -> None:
    with pytest.raises(KeyError), OptimizationProfileGuard(1), OptimizationProfileGuard.auto():
        raise KeyError
    assert request() == "default"


def test_guard_may_be_entered_again_inside_itself() -> None:
    guard = OptimizationProfileGuard(1)
    with guard, guard:
        assert request() == "pinned(1)"
    assert request() == "default"


@pytest.mark.parametrize("index", [-1, -(2**40), 2**31])
def test_guard_refuses_an_index_that_no_engine_has(index: int) -> None:
    with pytest.raises(ValueError, match=f"got {index}, allowed 0 to 2147483647"):
        OptimizationProfileGuard(index)
    assert request() == "default"


@pytest.mark.parametrize("index", [True, 1.0, "1", None])
def test_guard_refuses_what_is_no_index(index: object) -> None:
    with pytest.raises(TypeError, match="optimization profile index"):
        OptimizationProfileGuard(index)  # type: ignore[arg-type]


def test_guard_is_not_seen_on_another_thread() -> None:
    seen: list[str] = []
    with OptimizationProfileGuard(1):
        thread = threading.Thread(target=lambda: seen.append(request()))
        thread.start()
        thread.join()
    assert seen == ["default"]


class Stock:
    """The stock executorch.runtime with the interface of Module that the tests use."""

    def __init__(self, program: bytes) -> None:
        self._program = Runtime.get().load_program(program)
        self._method = self._program.load_method("forward")

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return self._method.execute(list(inputs))


@pytest.fixture(params=[Module, Stock], ids=["Module", "executorch.runtime"])
def runtime(request: pytest.FixtureRequest) -> type[Module]:
    return request.param


def test_no_guard_is_profile_0(runtime: type[Module]) -> None:
    module = runtime(rows().buffer)
    x = torch.randn(8, 4)
    torch.testing.assert_close(module.forward(x), rows().eager(x))
    with pytest.raises((ValueError, RuntimeError)):
        module.forward(torch.randn(9, 4))


def test_pinned_profiles_serve_every_transition(runtime: type[Module]) -> None:
    module = runtime(rows().buffer)
    for index, sizes in [(0, (1, 2, 8)), (1, (4, 17, 64)), (0, (8, 5, 1)), (1, (64, 4)), (0, (1,))]:
        for size in sizes:
            x = torch.randn(size, 4)
            with OptimizationProfileGuard(index):
                torch.testing.assert_close(module.forward(x), rows().eager(x))


def test_pinned_profile_refuses_what_another_accepts(runtime: type[Module]) -> None:
    module = runtime(rows().buffer)
    with OptimizationProfileGuard(1), pytest.raises((ValueError, RuntimeError)):
        module.forward(torch.randn(3, 4))
    with OptimizationProfileGuard(0), pytest.raises((ValueError, RuntimeError)):
        module.forward(torch.randn(9, 4))
    x = torch.randn(2, 4)
    torch.testing.assert_close(module.forward(x), rows().eager(x))


def test_auto_serves_what_only_profile_1_accepts(runtime: type[Module]) -> None:
    module = runtime(rows().buffer)
    with OptimizationProfileGuard.auto():
        for size in (1, 64, 4, 9, 8):
            x = torch.randn(size, 4)
            torch.testing.assert_close(module.forward(x), rows().eager(x))


def test_profile_1_may_give_the_largest_output(runtime: type[Module]) -> None:
    module = runtime(decode_first().buffer)
    with OptimizationProfileGuard.auto():
        for length in (1, 64, 1, 2, 63, 1):
            x = torch.randn(1, length, 8)
            (output,) = module.forward(x)
            assert output.shape == (1, length, 16)
            torch.testing.assert_close([output], decode_first().eager(x))


def test_other_backends_ignore_the_guard(runtime: type[Module]) -> None:
    module = runtime(mixed().buffer)
    w = torch.randn(1, 4)
    for index, sizes in [(0, (1, 4)), (1, (5, 32)), (0, (3,))]:
        for size in sizes:
            x = torch.randn(size, 4)
            with OptimizationProfileGuard(index):
                torch.testing.assert_close(module.forward(x, w), mixed().eager(x, w))


def test_static_engine_runs_beside_a_pinned_dynamic_one(runtime: type[Module]) -> None:
    module = runtime(static_beside_dynamic().buffer)
    w, x = torch.randn(1, 4), torch.randn(20, 4)
    with OptimizationProfileGuard(1):
        torch.testing.assert_close(module.forward(w, x), static_beside_dynamic().eager(w, x))
