"""Engines in Python that raise: the exception's kind and text arrive, and the next call works."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.python_engine import FakeCuda
from runtime.device_programs import Load, doubled

from executorch_tensorrt import ExecuTorchError, Module

VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)
RAISED = [
    (ValueError, ValueError),
    (RuntimeError, ExecuTorchError),
    (MemoryError, MemoryError),
    (KeyError, ExecuTorchError),
]
OF_A_CALL = [
    "activation_size", "create_context", "set_input_shape", "infer_output_shapes",
    "set_input_address", "set_output_address", "enqueue",
]  # fmt: skip


def assert_works(module: Module, cuda: FakeCuda) -> None:
    np.testing.assert_array_equal(module.forward(cuda.array(VALUES))[0].numpy(), 2 * VALUES)
    np.testing.assert_array_equal(module.forward(VALUES)[0], 2 * VALUES)


@pytest.mark.parametrize(("raised", "expected"), RAISED)
@pytest.mark.parametrize("method", OF_A_CALL)
def test_call_raises_what_the_engine_raises(
    method: str, raised: type[Exception], expected: type[Exception], cuda: FakeCuda, load: Load
) -> None:
    module, runtime = load(doubled())
    runtime.failing[method] = raised("TensorRT is unwell: ü %s {}")
    for values in (cuda.array(VALUES), VALUES):
        with pytest.raises(expected, match=r"method 'forward'.*TensorRT is unwell: ü %s \{\}"):
            module.forward(values)
    runtime.failing.clear()
    assert_works(module, cuda)


@pytest.mark.parametrize(("raised", "expected"), RAISED)
def test_call_whose_context_does_not_take_larger_memory_raises_until_it_does(
    raised: type[Exception], expected: type[Exception], cuda: FakeCuda, load: Load
) -> None:
    module, runtime = load(doubled(), optimization_profile="auto")
    module.forward(VALUES)
    long = np.concatenate([VALUES] * 3)
    np.testing.assert_array_equal(module.forward(long)[0], 2 * long)
    runtime.failing["set_activation_memory"] = raised("TensorRT is unwell: ü %s {}")
    for values in (cuda.array(VALUES), VALUES):
        with pytest.raises(expected, match=r"method 'forward'.*TensorRT is unwell: ü %s \{\}"):
            module.forward(values)
        np.testing.assert_array_equal(module.forward(long)[0], 2 * long)
    runtime.failing.clear()
    assert_works(module, cuda)


@pytest.mark.parametrize(("raised", "expected"), RAISED)
def test_loading_raises_what_the_engine_raises_and_names_the_machine(
    raised: type[Exception], expected: type[Exception], cuda: FakeCuda, load: Load
) -> None:
    module, runtime = load(doubled())
    runtime.failing["load"] = raised("no such plan")
    with pytest.raises(expected, match=r"no such plan.*this machine has .*compute capability.*driver for CUDA 12.4"):
        module.forward(VALUES)
    runtime.failing.clear()
    assert_works(module, cuda)


@pytest.mark.parametrize(("raised", "expected"), RAISED)
def test_layers_that_can_not_be_taken_fail_the_call(
    raised: type[Exception], expected: type[Exception], cuda: FakeCuda, load: Load
) -> None:
    module, runtime = load(doubled(), profile_level="layers")
    runtime.failing["take_layers"] = raised("no layers")
    with pytest.raises(expected, match="no layers"):
        module.forward(VALUES)
    runtime.failing.clear()
    assert_works(module, cuda)


@pytest.mark.parametrize("value", [None, 5, [1, 2], [(1.5, 2)], "shape"])
def test_output_shapes_that_are_none_fail_the_call(
    value: object, cuda: FakeCuda, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = load(doubled())
    with monkeypatch.context() as patch:
        patch.setattr("fakes.python_engine.FakeContext.infer_output_shapes", lambda self: value)
        with pytest.raises((ValueError, ExecuTorchError), match="method 'forward'"):
            module.forward(VALUES)
    assert_works(module, cuda)


@pytest.mark.parametrize("free", [0, 100, 300, 700])
def test_device_without_enough_memory_raises_memory_error(free: int, cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    array = cuda.array(VALUES)
    cuda.library.fake_cuda_set_free_memory(free)
    with pytest.raises(MemoryError, match=r"allocating \d+ bytes of device memory for .* failed: out of memory"):
        module.forward(array)
    cuda.library.fake_cuda_set_free_memory(1 << 20)
    assert_works(module, cuda)


def test_fault_of_the_device_fails_the_call(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    assert_works(module, cuda)
    cuda.library.fake_cuda_fail(b"cudaStreamSynchronize", 0, 700, 1)
    with pytest.raises(ExecuTorchError, match="running the engine failed: an illegal memory access"):
        module.forward(cuda.array(VALUES))
    assert_works(module, cuda)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_interruption_inside_an_engine_reaches_the_caller(
    interruption: type[BaseException], cuda: FakeCuda, load: Load
) -> None:
    module, runtime = load(doubled())
    for method in ("load", "create_context", "enqueue"):
        runtime.failing[method] = interruption("stop")
        with pytest.raises(interruption, match="stop"):
            module.forward(VALUES)
        runtime.failing.clear()
    assert_works(module, cuda)
