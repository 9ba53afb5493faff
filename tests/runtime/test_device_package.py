"""Engines on a device behind the operator that packages of PyTorch call; tensors on the host are staged."""

from __future__ import annotations

import faulthandler
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from export_cases import model_of, rows
from fakes.python_engine import Array, Compute, FakeCuda
from runtime.device_programs import doubled

from executorch_tensorrt import _native, aoti


def compile_doubled(cuda: FakeCuda, compute: Compute | None = None) -> aoti.CompiledModule:
    """float32 [1..4 or 5..12, 4]: twice the input."""
    case = replace(doubled(), compute=compute) if compute else doubled()
    _native.register_engine_runtime("tensorrt_rtx", case.runtime(cuda))
    inputs = [rows((1, 2, 4), (5, 8, 12), name="x")]
    model = model_of(lambda self, x: x * 2)
    return aoti.compile(model, inputs, engine="tensorrt_rtx", optimization_profile="auto")


@pytest.fixture(autouse=True)
def _engines_end(cuda: FakeCuda) -> Iterator[None]:
    yield
    _native.release_packaged_engines()


@pytest.fixture
def _no_deadlock() -> Iterator[None]:
    """Ends the process with every thread's traceback where threads wait for each other."""
    interval = sys.getswitchinterval()
    faulthandler.dump_traceback_later(60, exit=True)
    sys.setswitchinterval(60)  # a thread keeps the GIL until it waits
    yield
    sys.setswitchinterval(interval)
    faulthandler.cancel_dump_traceback_later()


def test_operator_runs_engines_on_a_device(cuda: FakeCuda) -> None:
    compiled = compile_doubled(cuda)
    for size in (2, 8, 3):
        x = torch.randn(size, 4)
        torch.testing.assert_close(compiled(x), 2 * x)


def test_engine_on_a_device_is_made_once(cuda: FakeCuda) -> None:
    compiled = compile_doubled(cuda)
    compiled(torch.ones(2, 4))
    allocations = cuda.allocations()
    for _ in range(3):
        compiled(torch.ones(2, 4))
    assert cuda.allocations() == allocations


@pytest.mark.usefixtures("_no_deadlock")
def test_thread_that_waits_for_an_engine_lets_others_have_the_gil(cuda: FakeCuda, tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def compute(x: Array) -> list[Array]:
        if not inside.is_set():
            inside.set()
            go_on.wait()
        return [x * 2]

    compiled = compile_doubled(cuda, compute)
    aoti.save(compiled, tmp_path / "model.pt2")
    runner = aoti.load(tmp_path / "model.pt2")  # which keeps the GIL in its calls
    x = torch.randn(2, 4)
    thread = threading.Thread(target=compiled, args=(x,))
    thread.start()
    inside.wait()
    go_on.set()
    torch.testing.assert_close(runner(x), 2 * x)
    thread.join()
