"""What the three guards have in common: how they nest, and how a wrong end is refused."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache

import pytest

from executorch_tensorrt import CudaStreamGuard, EngineState, EngineStateGuard, OptimizationProfileGuard, _native
from executorch_tensorrt.runtime.guard import Guard
from executorch_tensorrt.runtime.log import forward_messages

ELSEWHERE = "Guard: got its end on another thread, allowed on the thread where it began; end it there$"
TOO_EARLY = "Guard: got its end while a later one is open, allowed the innermost; end the later one first$"
NOT_ENTERED = "Guard: got an end without a begin, allowed one for each; enter it first$"


@dataclass(frozen=True)
class Kind:
    """Guards of one kind by number, and the number that this thread asks for: 0 without a guard."""

    make: Callable[[int], Guard]
    asked: Callable[[], int]


@cache
def state(number: int) -> tuple[EngineState, int]:
    made = EngineState()
    with EngineStateGuard(made):
        return made, _native.current_state()


def number_of_state() -> int:
    current = _native.current_state()
    return next((number for number in range(1, 4) if state(number)[1] == current), 0) if current else 0


def number_of_request() -> int:
    return int(repr(_native.current_request()).removeprefix("pinned(").removesuffix(")").replace("default", "0"))


KINDS = {
    "profile": Kind(OptimizationProfileGuard, number_of_request),
    "state": Kind(lambda number: EngineStateGuard(state(number)[0]), number_of_state),
    "stream": Kind(CudaStreamGuard, lambda: _native.current_stream() or 0),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    for number in range(1, 4):
        state(number)
    return KINDS[request.param]


def in_thread(work: Callable[[], object]) -> BaseException | None:
    """What it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def end(guard: Guard) -> None:
    guard.__exit__(None, None, None)


def test_guards_nest_and_restore_also_when_an_exception_passes(kind: Kind) -> None:
    with kind.make(1) as outer:
        assert isinstance(outer, Guard)
        with kind.make(2):
            assert kind.asked() == 2
        assert kind.asked() == 1
        with pytest.raises(KeyError), kind.make(2), kind.make(3):
            raise KeyError
        assert kind.asked() == 1
    assert kind.asked() == 0


def test_end_on_another_thread_is_refused_without_effect(kind: Kind) -> None:
    guard = kind.make(1)
    guard.__enter__()

    def elsewhere() -> None:
        with kind.make(2):
            with pytest.raises(RuntimeError, match=ELSEWHERE):
                end(guard)
            assert kind.asked() == 2
        assert kind.asked() == 0

    assert in_thread(elsewhere) is None
    assert kind.asked() == 1
    end(guard)
    assert kind.asked() == 0


def test_end_out_of_order_is_refused_without_effect(kind: Kind) -> None:
    outer, inner = kind.make(1), kind.make(2)
    outer.__enter__()
    inner.__enter__()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=TOO_EARLY):
            end(outer)
        assert kind.asked() == 2
    end(inner)
    assert kind.asked() == 1
    end(outer)
    assert kind.asked() == 0


def test_end_without_a_begin_is_refused(kind: Kind) -> None:
    guard = kind.make(1)
    with pytest.raises(RuntimeError, match=NOT_ENTERED):
        end(guard)
    with guard:
        pass
    with kind.make(2):
        with pytest.raises(RuntimeError, match=NOT_ENTERED):
            end(guard)
        assert kind.asked() == 2


def test_kinds_do_not_care_for_the_order_of_others() -> None:
    guards = [kind.make(1) for kind in KINDS.values()]
    for guard in guards:
        guard.__enter__()
    for guard in guards:
        end(guard)
    assert [kind.asked() for kind in KINDS.values()] == [0, 0, 0]


def test_guard_may_be_entered_again_inside_itself_and_others(kind: Kind) -> None:
    guard = kind.make(1)
    with guard, guard, kind.make(2), guard:
        assert kind.asked() == 1
    assert kind.asked() == 0


def test_one_guard_serves_several_threads_at_once(kind: Kind) -> None:
    guard = kind.make(1)
    here, there = threading.Event(), threading.Event()

    def other() -> None:
        with guard:
            there.set()
            assert here.wait(10)
            assert kind.asked() == 1
        assert kind.asked() == 0

    thread = threading.Thread(target=lambda: raised.append(in_thread(other)))
    raised: list[BaseException | None] = []
    with guard:
        thread.start()
        assert there.wait(10)
    assert kind.asked() == 0
    here.set()
    thread.join()
    assert raised == [None]


def test_guard_that_is_collected_ends(kind: Kind) -> None:
    with kind.make(1):
        guard = kind.make(2)
        guard.__enter__()
        assert kind.asked() == 2
        del guard
        assert kind.asked() == 1
        guards = [kind.make(2), kind.make(3)]
        guards.append(guards)  # type: ignore[arg-type]
        for guard in guards[:2]:
            guard.__enter__()
        del guard, guards
        gc.collect()
        assert kind.asked() == 1


def test_guard_that_is_collected_on_another_thread_is_told_and_goes_with_the_next(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    forward_messages()
    with kind.make(1):
        guards = [kind.make(2)]
        guards[0].__enter__()
        assert in_thread(guards.clear) is None
        assert kind.asked() == 2
        with caplog.at_level(logging.ERROR):
            forward_messages()
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert re.search(ELSEWHERE, caplog.records[0].getMessage())
        with kind.make(3):
            assert kind.asked() == 3
        assert kind.asked() == 1


def test_guards_in_generators_may_end_in_the_right_order_alone(kind: Kind) -> None:
    def generator(number: int) -> Iterator[int]:
        with kind.make(number):
            yield kind.asked()

    first, second = generator(1), generator(2)
    assert [next(first), next(second)] == [1, 2]
    with pytest.raises(RuntimeError, match=TOO_EARLY) as error:
        next(first)
    assert kind.asked() == 2
    assert list(second) == []
    assert kind.asked() == 1  # the traceback has the guard
    del error
    gc.collect()
    assert kind.asked() == 0


def test_generator_that_is_closed_on_another_thread_says_so(kind: Kind) -> None:
    def generator() -> Iterator[int]:
        with guard:
            yield kind.asked()

    guard = kind.make(1)
    suspended = generator()
    assert next(suspended) == 1
    raised = in_thread(suspended.close)  # type: ignore[attr-defined]
    assert isinstance(raised, RuntimeError)
    assert kind.asked() == 1
    end(guard)
    assert kind.asked() == 0


def test_tasks_that_interleave_are_told(kind: Kind) -> None:
    async def task(number: int) -> None:
        with kind.make(number):
            await asyncio.sleep(0)

    async def main() -> list[BaseException | None]:
        return await asyncio.gather(task(1), task(2), return_exceptions=True)

    first, second = asyncio.run(main())
    assert re.search(TOO_EARLY, str(first))
    assert second is None
    del first
    gc.collect()
    assert kind.asked() == 0


def test_exception_inside_is_kept_when_the_end_is_refused(kind: Kind) -> None:
    outer, inner = kind.make(1), kind.make(2)

    def leave_inner_open() -> None:
        with outer:
            inner.__enter__()
            raise KeyError

    with pytest.raises(RuntimeError, match=TOO_EARLY) as error:
        leave_inner_open()
    assert isinstance(error.value.__context__, KeyError)
    end(inner)
    end(outer)
    assert kind.asked() == 0


def test_exit_stack_and_suppress_work_as_usual(kind: Kind) -> None:
    with suppress(ZeroDivisionError), ExitStack() as stack:
        for number in (1, 2, 3):
            stack.enter_context(kind.make(number))
        assert kind.asked() == 3
        _ = 1 / 0
    assert kind.asked() == 0
