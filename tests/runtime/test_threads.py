"""Several Python threads: what they share, what they don't, and what waits for what."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import models
import numpy as np
import pytest
from gate import Gate, gated

from executorch_tensorrt import EngineState, Module, OptimizationProfileGuard
from executorch_tensorrt.profiling import clear_profiling, set_profiling

CALLS = 200


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


@pytest.fixture
def gate(build_dir: Path) -> Iterator[Gate]:
    gate = Gate(build_dir)
    yield gate
    gate.end()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """rows.pte, whose engine copies its input and has a gate."""
    path = tmp_path / "gated.pte"
    path.write_bytes(gated(models.rows().buffer))
    return path


def echo(module: Module, value: float, rows: int = 2) -> bool:
    """Whether a call of the gated engine gives its input."""
    (output,) = module.forward(np.full((rows, 4), value, np.float32))
    return output.shape == (rows, 4) and bool(np.all(output == value))


def test_gil_is_free_while_a_call_waits_in_its_engine(program: Path, gate: Gate, pool: ThreadPoolExecutor) -> None:
    module = Module(program)
    gate.close()
    call = pool.submit(echo, module, 1.0)
    assert gate.wait_until_inside(1)
    # This thread runs Python code, and so does a third one.
    assert pool.submit(sum, [1, 2]).result() == 3
    assert not call.done()
    gate.open()
    assert call.result()


def test_guards_of_two_threads_hold_at_the_same_time(program: Path, gate: Gate, pool: ThreadPoolExecutor) -> None:
    def run(profile: int, rows: int) -> int:
        module = Module(program)
        with OptimizationProfileGuard(profile):
            assert echo(module, float(rows), rows)
        return module.last_selections[0].profile

    gate.close()
    calls = [pool.submit(run, 0, 1), pool.submit(run, 1, 64)]
    assert gate.wait_until_inside(2), "the modules did not run at the same time"
    gate.open()
    assert [call.result() for call in calls] == [0, 1]


def test_guard_is_not_seen_by_a_call_of_another_thread(pool: ThreadPoolExecutor) -> None:
    def run() -> int:
        module = Module(models.rows().buffer)
        module.forward(np.ones((2, 4), np.float32))
        return module.last_selections[0].profile

    with OptimizationProfileGuard(1):
        assert pool.submit(run).result() == 0


def test_two_modules_on_one_file_run_in_two_threads(rows: Path, pool: ThreadPoolExecutor) -> None:
    x = np.random.default_rng(0).random((6, 4), np.float32)
    (expected,) = Module(rows).forward(x)

    def work(first_profile: int) -> None:
        module = Module(rows)
        for call in range(CALLS):
            profile = (first_profile + call) % 2
            with OptimizationProfileGuard(profile):
                (output,) = module.forward(x)
            np.testing.assert_array_equal(output, expected)
            assert module.last_selections[0].profile == profile

    for future in [pool.submit(work, 0), pool.submit(work, 1)]:
        future.result()


def test_calls_of_one_module_take_turns(program: Path, gate: Gate, pool: ThreadPoolExecutor) -> None:
    module = Module(program)

    def work(value: float) -> bool:
        return all(echo(module, value, rows=1 + call % 8) for call in range(CALLS))

    gate.close()
    calls = [pool.submit(work, 1.0), pool.submit(work, 2.0)]
    assert gate.wait_until_inside(1)
    gate.open()
    assert all(call.result() for call in calls)
    assert gate.most_inside == 1


def test_modules_come_and_go_while_another_runs(program: Path, gate: Gate, pool: ThreadPoolExecutor) -> None:
    module, leaving = Module(program), Module(program)
    assert echo(leaving, 3.0)
    gate.close()
    call = pool.submit(echo, module, 1.0)
    assert gate.wait_until_inside(1)
    del leaving
    gc.collect()
    coming = Module(program)
    coming.load_method()
    assert coming.unload_method()
    assert not call.done()
    gate.open()
    assert call.result()


def test_unloading_waits_for_the_call_of_another_thread(program: Path, gate: Gate, pool: ThreadPoolExecutor) -> None:
    module = Module(program)
    started = threading.Event()

    def unload() -> tuple[bool, int]:
        started.set()
        return module.unload_method(), len(finished)

    finished: list[bool] = []
    gate.close()
    call = pool.submit(echo, module, 1.0)
    assert gate.wait_until_inside(1)
    unloading = pool.submit(unload)
    assert started.wait(20)
    finished.append(True)  # from here on the call may end
    gate.open()
    assert call.result()
    assert unloading.result() == (True, 1)
    assert not module.is_method_loaded()
    assert echo(module, 2.0)


def test_methods_are_unloaded_while_other_threads_call(rows: Path, pool: ThreadPoolExecutor) -> None:
    module = Module(rows)
    x = np.ones((3, 4), np.float32)
    (expected,) = module.forward(x)

    def work() -> bool:
        return all(np.array_equal(module.forward(x)[0], expected) for _ in range(CALLS))

    calls = [pool.submit(work), pool.submit(work)]
    while not all(call.done() for call in calls):
        module.unload_method()
    assert all(call.result() for call in calls)


def test_process_wide_profiling_changes_while_threads_call(rows: Path, pool: ThreadPoolExecutor) -> None:
    x = np.ones((3, 4), np.float32)
    (expected,) = Module(rows).forward(x)

    def work() -> bool:
        module = Module(rows, etdump=True)
        return all(np.array_equal(module.forward(x)[0], expected) for _ in range(CALLS))

    calls = [pool.submit(work), pool.submit(work)]
    try:
        while not all(call.done() for call in calls):
            for level in ("layers", "off", "phases"):
                set_profiling(level)
            clear_profiling()
    finally:
        clear_profiling()
    assert all(call.result() for call in calls)


def test_modules_that_share_a_state_run_in_two_threads(pool: ThreadPoolExecutor) -> None:
    program, state = models.cached_rows().buffer, EngineState()

    def work(first: int) -> None:
        module = Module(program, state=state)
        for position in range(first, first + 16):
            module.forward(np.full((1, 4), position, np.float32), np.array([position]))

    done: list[Future[None]] = [pool.submit(work, 0), pool.submit(work, 16)]
    while not all(call.done() for call in done):
        for name in state.names:
            written = state.read(name)
            assert np.all(np.isin(written, np.arange(32)))
    for call in done:
        call.result()
    np.testing.assert_array_equal(state.read("cache"), np.repeat(np.arange(32), 4).reshape(32, 4))


READ_SLOWLY = """
import os
import sys
import threading
from executorch_tensorrt import _native

def open_module():
    try:
        _native.Module(sys.argv[1], "file", False, {})
    except ValueError:
        print("read")

thread = threading.Thread(target=open_module)
thread.start()
os.close(os.open(sys.argv[1], os.O_WRONLY))  # waits for the reader, which waits for this
thread.join()
"""


def test_gil_is_free_while_a_program_is_read(tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    pipe = tmp_path / "pipe.pte"
    os.mkfifo(pipe)
    assert run_python(READ_SLOWLY, str(pipe)).stdout == "read\n"
