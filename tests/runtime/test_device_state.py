"""Buffers that engines on a device own: they stay there, and change places with the next value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fakes.python_engine import FakeCuda
from runtime.device_programs import Load, cached

from executorch_tensorrt import CudaStreamGuard, EngineState, ExecuTorchError, Module
from executorch_tensorrt.cli import app

TESTS = Path(__file__).resolve().parents[1]
ONES = np.ones((32, 4), np.float32)


def arguments(value: float, *positions: int) -> list[Any]:
    return [np.full((len(positions), 4), value, np.float32), np.array(positions)]


def put(module: Module, value: float, *positions: int) -> float:
    """Write rows of one value, and return what the cache adds up to in one column."""
    (total,) = module.forward(*arguments(value, *positions))
    return float(total[0])


@pytest.mark.parametrize("where", ["device", "host_io", "host"])
def test_state_stays_on_the_device_between_calls(where: Any, cuda: FakeCuda, load: Load) -> None:
    module, _ = load(cached(where), optimization_profile="auto")
    cuda.take_log()
    assert [put(module, 1, 0, 1, 2), put(module, 5, 3), put(module, 0, 0, 1), put(module, 1, 0)] == [3, 8, 6, 7]
    copied = [line for line in cuda.take_log() if line.startswith("Memcpy")]
    assert copied
    assert not any(" 512 " in line for line in copied)
    assert module.state.read("cache").sum() == 7 * 4


def test_state_is_replayed_in_both_orders(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(cached(), use_cuda_graphs=True)
    for step in range(10):
        assert put(module, 1, step) == step + 1
    assert len(runtime.named("enqueue")) == 6  # four steps, and what was recorded of two


def test_state_is_written_read_and_reset(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(cached())
    assert put(module, 1, 0) == 1
    module.state.write("cache", np.full((32, 4), 2, np.float32))
    assert put(module, 0, 5) == 62
    module.state.reset()
    assert put(module, 1, 7) == 1
    assert module.state.names == ["cache"]
    with pytest.raises(ValueError, match="buffer 'cache': got float64"):
        module.state.write("cache", np.zeros((32, 4)))


def test_state_is_shared_by_modules_on_streams_of_their_own(cuda: FakeCuda, load: Load) -> None:
    state = EngineState()
    one, _ = load(cached(), state=state)
    other = Module(cached().program, state=state)
    streams = [cuda.stream(), cuda.stream()]
    for step in range(6):
        inputs = [cuda.array(array) for array in arguments(1, step)]
        with CudaStreamGuard(streams[step % 2]):
            (one, other)[step % 2].forward(*inputs)
    assert sum(map(cuda.pending, streams)) > 0
    assert state.read("cache").sum() == 6 * 4


def test_state_outlives_its_modules_and_frees_its_memory(cuda: FakeCuda, load: Load) -> None:
    before = cuda.allocations()
    state = EngineState()
    module, _ = load(cached(), state=state)
    put(module, 3, 0)
    del module
    assert cuda.allocations() == before + 2
    module = Module(cached().program, state=state)
    assert put(module, 1, 1) == 4
    del module, state
    assert cuda.allocations() == before


def test_state_whose_device_fails_raises(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(cached())
    put(module, 1, 0)
    uses = [module.state.reset, lambda: module.state.read("cache"), lambda: module.state.write("cache", ONES)]
    for use in uses:
        cuda.fail("cudaStreamSynchronize")
        with pytest.raises(ExecuTorchError, match="engine state: .* a buffer failed: an illegal memory access"):
            use()
    module.state.reset()
    assert put(module, 1, 0) == 1


def test_call_that_fails_leaves_the_state(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(cached())
    put(module, 3, 0)
    runtime.failing["enqueue"] = RuntimeError("no")
    with pytest.raises(ExecuTorchError, match="no"):
        put(module, 1, 1)
    runtime.failing.clear()
    cuda.fail("cudaStreamSynchronize")
    with pytest.raises(ExecuTorchError, match="illegal memory access"):
        put(module, 1, 1)
    assert put(module, 1, 2) == 4


def test_command_line_runs_and_inspects_a_program_with_state(cuda: FakeCuda, load: Load, tmp_path: Path) -> None:
    load(cached())
    path = tmp_path / "cached.pte"
    path.write_bytes(cached().program)
    for arguments in (["inspect", path], ["run", path, "--input", "ones:float32[1,4]", "--input", "zeros:int64[1]"]):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"


# In a process of its own: the stock runtime redirects C++'s cerr in each call, and calls of two threads may leave it
# pointing at what is gone.
STOCK_THREADS = """
import os, sys, threading
from pathlib import Path
import torch
from executorch.runtime import Runtime
from executorch_tensorrt import EngineState, EngineStateGuard, _native
from fakes.python_engine import FakeCuda
from runtime.device_programs import cached
from runtime.test_device_state import arguments

cuda = FakeCuda(Path(os.environ["ETRT_CUDART"]))
cuda.reset()
case = cached("host")
runtime = case.runtime(cuda)
_native.register_engine_runtime("tensorrt_rtx", runtime)
programs = [Runtime.get().load_program(case.program) for _ in range(2)]
with EngineStateGuard(EngineState()):
    methods = [program.load_method("forward") for program in programs]
is_inside, is_waiting = threading.Event(), threading.Event()
asked = runtime.asked

def wait_inside(name, *arguments):
    asked(name, *arguments)
    if name == "enqueue" and not is_inside.is_set():
        is_inside.set()
        assert is_waiting.wait(60)

runtime.asked = wait_inside
inputs = [torch.from_numpy(array) for array in arguments(1, 0)]

def first():
    methods[0].execute(inputs)

def second():
    assert is_inside.wait(60)
    is_waiting.set()
    methods[1].execute(inputs)

threads = [threading.Thread(target=target, daemon=True) for target in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(30)
print("alive:", [thread.is_alive() for thread in threads], flush=True)
os._exit(0)
"""


def test_methods_of_the_stock_runtime_that_share_a_state_run_in_threads(fake_cudart: Path) -> None:
    """A thread that waits for another's call, with the GIL as the stock runtime has it, lets go of it."""
    environment = {**os.environ, "ETRT_CUDART": str(fake_cudart), "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", STOCK_THREADS]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.splitlines()[-1:] == ["alive: [False, False]"], result.stderr
