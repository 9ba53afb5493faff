"""A device for engines without a GPU: the fake CUDA runtime, and fakes of the engines."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.python_engine import FakeCuda, FakeRuntime
from runtime.device_programs import Case, Load

from executorch_tensorrt import Module, _native
from executorch_tensorrt.engines.tensorrt.registration import register_runtimes


@pytest.fixture(scope="session")
def fake_cudart(build_dir: Path) -> Path:
    path = build_dir / "tests" / "native" / "libetrt_fake_cudart.so"
    if not path.is_file():
        pytest.skip(f"no fake CUDA runtime in {path.parent}: run `make build`")
    return path


@pytest.fixture(scope="session")
def fake_cuda(fake_cudart: Path) -> FakeCuda:
    """The CUDA of this process from now on: a process keeps the first that it can use."""
    for name in ("onnx", "onnxscript", "tensorrt_rtx"):
        pytest.importorskip(name, reason="pip install 'executorch-tensorrt[tensorrt]'")
    cuda = FakeCuda(fake_cudart)
    cuda.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "ETRT_CUDART", str(fake_cudart))
        if not _native.device_memory_available() or not cuda.take_log():
            pytest.skip("the process has another CUDA: run these tests in a process of their own")
    return cuda


@pytest.fixture
def cuda(fake_cuda: FakeCuda) -> Iterator[FakeCuda]:
    """The device, as a new process has it. The test leaves nothing alive on it."""
    fake_cuda.reset()
    before = fake_cuda.allocations()
    yield fake_cuda
    register_runtimes(_native.register_engine_runtime)
    fake_cuda.free()
    if fake_cuda.allocations() != before:
        gc.collect()
    assert fake_cuda.allocations() == before


@pytest.fixture
def load(cuda: FakeCuda) -> Load:
    """Opens a program, over a fake of its engines."""

    def opened(case: Case, **options: Any) -> tuple[Module, FakeRuntime]:
        runtime = case.runtime(cuda)
        _native.register_engine_runtime("tensorrt_rtx", runtime)
        return Module(case.program, **options), runtime

    return opened
