"""Calls on a stream that the caller captures into a CUDA graph of his own."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.python_engine import FakeCuda
from runtime.device_programs import Load, doubled, two_engines

from executorch_tensorrt import CudaStreamGuard, ExecuTorchError

VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)
LONG = np.arange(32, dtype=np.float32).reshape(8, 4)


def test_joined_call_runs_whenever_the_graph_does(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    stream, array = cuda.stream(), cuda.array(VALUES)
    with CudaStreamGuard(stream):
        (kept,) = module.forward(array)  # its memory serves no later call
        with cuda.captured(stream) as graph:
            (output,) = module.forward(array)
    address = array.__cuda_array_interface__["data"][0]
    for factor in (1, 2, 3):
        cuda.at(address, VALUES.shape, VALUES.dtype)[...] = VALUES * factor
        cuda.launch(graph[0], stream)
        np.testing.assert_array_equal(cuda.read(output), VALUES * factor * 2)
    np.testing.assert_array_equal(cuda.read(kept), VALUES * 2)
    cuda.destroy(graph[0])


def test_engine_is_not_loaded_in_a_capture(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    stream, array = cuda.stream(), cuda.array(VALUES)
    unready = pytest.raises(ValueError, match="got an engine to load, allowed none; load the method before the capture")
    with CudaStreamGuard(stream), cuda.captured(stream) as refused, unready:
        module.forward(array)
    cuda.destroy(refused[0])
    module.load_method("forward")
    np.testing.assert_array_equal(cuda.read(module.forward(array)[0]), VALUES * 2)


def test_memory_of_a_captured_call_stays_when_a_larger_profile_takes_more(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled(), optimization_profile="auto")
    stream, array = cuda.stream(), cuda.array(VALUES)
    with CudaStreamGuard(stream):
        module.forward(array)
        with cuda.captured(stream) as graph:
            (output,) = module.forward(array)
    cuda.take_log()
    np.testing.assert_array_equal(module.forward(LONG)[0], LONG * 2)
    first, second = ((address, size) for *_, address, size in runtime.named("create_context"))
    assert first[0] != second[0]
    assert (first[1], second[1]) == (1024, 2048)
    assert "Free" not in cuda.take_log()
    cuda.launch(graph[0], stream)
    np.testing.assert_array_equal(cuda.read(output), VALUES * 2)
    cuda.destroy(graph[0])
    module.unload_method()
    assert cuda.take_log().count("Free") >= 2


def test_call_is_made_again_before_a_capture_when_memory_has_moved(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(), optimization_profile="auto")
    stream, array = cuda.stream(), cuda.array(VALUES)
    module.forward(array)
    module.forward(LONG)
    unready = pytest.raises(ValueError, match="make one such call before the capture")
    with CudaStreamGuard(stream), cuda.captured(stream) as refused, unready:
        module.forward(array)
    module.forward(array)
    with CudaStreamGuard(stream), cuda.captured(stream) as graph:
        (output,) = module.forward(array)
    cuda.launch(graph[0], stream)
    np.testing.assert_array_equal(output.numpy(), VALUES * 2)
    for each in (*refused, *graph):
        cuda.destroy(each)


def test_refused_calls_leave_the_capture(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    module.load_method("forward")
    stream, array = cuda.stream(), cuda.array(VALUES)
    with CudaStreamGuard(stream), cuda.captured(stream) as first:
        with pytest.raises(ValueError, match="make one such call before the capture"):
            module.forward(array)
        with pytest.raises(ValueError, match="input 0 on the host, allowed arrays on the device"):
            module.forward(VALUES)
    assert runtime.named("enqueue") == []
    np.testing.assert_array_equal(module.forward(array)[0].numpy(), 2 * VALUES)
    with CudaStreamGuard(stream), cuda.captured(stream) as second:
        (output,) = module.forward(array)
        with pytest.raises(ExecuTorchError, match="not permitted when stream is capturing"):
            output.numpy()
    cuda.launch(second[0], stream)
    np.testing.assert_array_equal(output.numpy(), 2 * VALUES)
    for graph in (*first, *second):
        cuda.destroy(graph)


def test_operator_on_the_host_between_engines_is_refused(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(two_engines())
    stream, array = cuda.stream(), cuda.array(VALUES)
    with CudaStreamGuard(stream):
        module.forward(array)
        with (
            cuda.captured(stream) as graph,
            pytest.raises(ExecuTorchError, match="not permitted when stream is capturing"),
        ):
            module.forward(array)
    (output,) = module.forward(array)
    np.testing.assert_array_equal(output.numpy(), np.cumsum(VALUES * 2, 0) * 2)
    cuda.destroy(graph[0])
