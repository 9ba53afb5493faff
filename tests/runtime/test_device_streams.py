"""The caller's CUDA stream, and calls that return before their work is done."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes.python_engine import FakeCuda, FakeRuntime
from runtime.device_programs import Load, doubled

from executorch_tensorrt import CudaStreamGuard, OptimizationProfileGuard

VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)
PER_THREAD = 2
LEVELS = ("off", "delegate", "phases", "layers")


def streams_of(runtime: FakeRuntime) -> list[int]:
    return [stream for (stream,) in runtime.named("enqueue")]


def test_calls_use_the_threads_own_stream_without_a_guard(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    module.forward(cuda.array(VALUES))
    module.forward(VALUES)
    assert streams_of(runtime) == [PER_THREAD] * 2


@pytest.mark.parametrize(
    "wrap",
    [
        int,
        lambda handle: SimpleNamespace(cuda_stream=handle),  # torch.cuda.Stream
        lambda handle: SimpleNamespace(ptr=handle),  # cupy.cuda.Stream
        lambda handle: SimpleNamespace(__cuda_stream__=lambda: (0, handle)),
        lambda handle: SimpleNamespace(__cuda_stream__=lambda: (0, handle), ptr=1, cuda_stream=1),
    ],
    ids=["int", "cuda_stream", "ptr", "protocol", "protocol first"],
)
def test_guard_takes_what_has_a_stream(wrap: Any, cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    stream = cuda.stream()
    with CudaStreamGuard(wrap(stream)):
        module.forward(VALUES)
    module.forward(VALUES)
    assert streams_of(runtime) == [stream, PER_THREAD]


@pytest.mark.parametrize("wrong", ["1", 1.5, True, -1, None, object(), SimpleNamespace(ptr="1")])
def test_guard_refuses_what_has_none(wrong: object) -> None:
    with pytest.raises(TypeError, match=f"stream: got {type(wrong).__name__} .*, allowed a cudaStream_t as an int"):
        CudaStreamGuard(wrong)


def test_guards_nest_and_end_on_exceptions(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    first, second = cuda.stream(), cuda.stream()

    def fail() -> None:
        with CudaStreamGuard(second):
            module.forward(VALUES)
            raise KeyError

    with CudaStreamGuard(first):
        with pytest.raises(KeyError):
            fail()
        module.forward(VALUES)
        with CudaStreamGuard(0):  # the default stream is named, too
            module.forward(VALUES)
    module.forward(VALUES)
    assert streams_of(runtime) == [second, first, 0, PER_THREAD]


def test_guard_is_of_its_thread(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    stream = cuda.stream()
    other = threading.Thread(target=module.forward, args=(VALUES,))
    with CudaStreamGuard(stream):
        other.start()
        other.join()
        module.forward(VALUES)
    assert streams_of(runtime) == [PER_THREAD, stream]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pin", ["default", "pinned", "auto"])
def test_call_returns_before_its_work_is_done(pin: str, level: Any, cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(), optimization_profile="auto" if pin == "auto" else None, profile_level=level)
    values = VALUES if pin == "default" else np.concatenate([VALUES] * 3)
    array, stream = cuda.array(values), cuda.stream()
    with CudaStreamGuard(stream):
        for _ in range(2):
            if pin == "pinned":
                with OptimizationProfileGuard(1):
                    (output,) = module.forward(array)
            else:
                (output,) = module.forward(array)
            assert cuda.pending(stream) == 1
            assert (cuda.peek(output).view(np.uint8) == 0xCD).all()
            cuda.run(stream)
            np.testing.assert_array_equal(cuda.read(output), 2 * values)


def test_copy_of_an_output_waits_for_the_named_stream(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    stream = cuda.stream()
    with CudaStreamGuard(stream):
        (output,) = module.forward(cuda.array(VALUES))
        assert cuda.pending(stream) == 1
        np.testing.assert_array_equal(output.numpy(), 2 * VALUES)


@pytest.mark.parametrize("where", ["device", "host"])
def test_call_with_host_arrays_waits_on_the_named_stream(where: Any, cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(where))
    stream = cuda.stream()
    with CudaStreamGuard(stream):
        np.testing.assert_array_equal(module.forward(VALUES)[0], 2 * VALUES)
        assert cuda.pending(stream) == 0


def test_calls_queue_up_on_one_stream(cuda: FakeCuda, load: Load) -> None:
    """Each output feeds the next call, over contexts of both profiles."""
    module, _ = load(doubled(), optimization_profile="auto")
    stream = cuda.stream()
    with CudaStreamGuard(stream):
        module.forward(cuda.array(np.concatenate([VALUES] * 3)))  # makes the context of profile 1
        outputs: list[Any] = [cuda.array(VALUES)]
        for _ in range(4):
            outputs = module.forward(*outputs)
        assert cuda.pending(stream) > 0
    cuda.run(stream)
    np.testing.assert_array_equal(cuda.read(outputs[0]), 16 * VALUES)


def test_call_on_another_stream_comes_after_the_one_before(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    first, second = cuda.stream(), cuda.stream()
    with CudaStreamGuard(first):
        outputs = module.forward(cuda.array(VALUES))
    with CudaStreamGuard(second):
        (output,) = module.forward(*outputs)
    assert (cuda.pending(first), cuda.pending(second)) == (1, 1)
    cuda.run(second)
    assert cuda.pending(first) == 0
    np.testing.assert_array_equal(cuda.read(output), 4 * VALUES)


def test_call_without_a_guard_comes_after_one_that_returned_early(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    with CudaStreamGuard(cuda.stream()):
        outputs = module.forward(cuda.array(VALUES))
    np.testing.assert_array_equal(module.forward(*outputs)[0].numpy(), 4 * VALUES)


@pytest.mark.parametrize("end", [lambda module: module.unload_method(), lambda module: None], ids=["unload", "drop"])
def test_module_waits_for_its_work_before_it_ends(end: Any, cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    stream = cuda.stream()
    with CudaStreamGuard(stream):
        (output,) = module.forward(cuda.array(VALUES))
    assert cuda.pending(stream) == 1
    end(module)
    del module
    assert cuda.pending(stream) == 0
    np.testing.assert_array_equal(cuda.read(output), 2 * VALUES)
