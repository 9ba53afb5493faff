"""Calls that take part in a CUDA graph of the caller's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gpu.cuda import Graph, Stream, call, to_device, to_host
from gpu.prepared import Case

from executorch_tensorrt import CudaStreamGuard, Module, OptimizationProfileGuard
from executorch_tensorrt.profiling import clear_profiling, set_profiling

Cases = Callable[[str], Case]


def filled(array: Any, values: np.ndarray[Any, Any]) -> None:
    """Overwrite a device array."""
    call("cudaMemcpy", ctypes.c_void_p(array.address), ctypes.c_void_p(values.ctypes.data), values.nbytes, 1)


def captured(module: Module, stream: Stream, inputs: Sequence[Any]) -> tuple[Graph, Any]:
    """The graph of one call, and its output, which it writes whenever it is launched."""
    with CudaStreamGuard(stream.handle), Graph.captured(stream) as graph:
        (output,) = module.forward(*inputs)
    return graph, output


def assert_launches(graph: Graph, output: Any, stream: Stream, array: Any, case: Case, call_name: str) -> None:
    values, plain = case.calls[call_name], Module(case.path, optimization_profile="auto")
    for launch in range(10):
        x = (values.inputs[0] * (launch + 1)).astype(np.float32)
        filled(array, x)
        graph.launch(stream)
        stream.synchronize()
        assert to_host(output).tobytes() == to_host(plain.forward(to_device(x))[0]).tobytes()


@pytest.mark.parametrize("replay", [False, True])
def test_joined_call_is_launched_again_and_again(replay: bool, case: Cases) -> None:
    program = case("mlp")
    module, stream = Module(program.path, use_cuda_graphs=replay), Stream()
    array = to_device(program.calls["first"].inputs[0])
    with CudaStreamGuard(stream.handle):
        module.forward(array)
    graph, output = captured(module, stream, [array])
    assert_launches(graph, output, stream, array, program, "first")
    program.calls["first"].assert_is([to_host(value) for value in module.forward(*program.calls["first"].inputs)])


def test_graph_works_when_the_engine_has_other_memory(case: Cases) -> None:
    """The larger optimization profile, and level layers, replace what the graph was made of."""
    program = case("mlp")
    module, stream = Module(program.path), Stream()
    array = to_device(program.calls["first"].inputs[0])
    module.forward(array)
    graph, output = captured(module, stream, [array])
    with OptimizationProfileGuard(1):
        module.forward(to_device(program.calls["largest"].inputs[0]))
    try:
        set_profiling("layers")
        module.forward(array)
    finally:
        clear_profiling()
    module.forward(array)
    assert_launches(graph, output, stream, array, program, "first")


def test_refused_call_leaves_the_capture(case: Cases) -> None:
    program = case("mlp")
    values = program.calls["first"]
    module, stream = Module(program.path), Stream()
    array = to_device(values.inputs[0])
    unloaded = pytest.raises(ValueError, match="got an engine to load")
    with CudaStreamGuard(stream.handle), Graph.captured(stream), unloaded:
        module.forward(array)
    module.load_method("forward")
    unused = pytest.raises(ValueError, match="was not used with last")
    with CudaStreamGuard(stream.handle), Graph.captured(stream), unused:
        module.forward(array)
    with CudaStreamGuard(stream.handle):
        module.forward(array)
    with CudaStreamGuard(stream.handle), Graph.captured(stream), pytest.raises(ValueError, match="on the host"):
        module.forward(values.inputs[0])
    graph, output = captured(module, stream, [array])
    assert_launches(graph, output, stream, array, program, "first")


def test_cache_in_two_blocks_is_not_captured(case: Cases) -> None:
    program = case("decoder")
    module, stream = Module(program.path), Stream()
    inputs = [to_device(array) for array in program.calls["first"].inputs]
    with CudaStreamGuard(stream.handle):
        module.forward(*inputs)
    before = module.state.read("keys")
    with (
        CudaStreamGuard(stream.handle),
        Graph.captured(stream),
        pytest.raises(ValueError, match="at two addresses in turn"),
    ):
        module.forward(*inputs)
    np.testing.assert_array_equal(module.state.read("keys"), before)
