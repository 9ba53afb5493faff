"""Streams of CUDA's green contexts, which are a part of a GPU: they work, or are refused cleanly."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import pytest
from gpu.cuda import call, to_device, to_host
from gpu.prepared import Case

from executorch_tensorrt import CudaStreamGuard, ExecuTorchError, Module

Cases = Callable[[str], Case]

_SM = 1
_DEFAULT_STREAM = 1
_NON_BLOCKING = 1


@pytest.fixture
def green_stream() -> Iterator[int]:
    """A stream of a green context that has all of the first GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        pytest.skip(f"no driver: {error}")
    if not hasattr(driver, "cuGreenCtxCreate"):
        pytest.skip("the driver has no green contexts: they came with CUDA 12.4")
    call("cudaFree", None)  # the device's own context is there

    def drive(name: str, *arguments: object) -> None:
        status = getattr(driver, name)(*arguments)
        if status:
            pytest.skip(f"{name}: error {status}")

    resource = ctypes.create_string_buffer(4096)
    description, context, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    drive("cuDeviceGetDevResource", 0, resource, _SM)
    drive("cuDevResourceGenerateDesc", ctypes.byref(description), resource, 1)
    drive("cuGreenCtxCreate", ctypes.byref(context), description, 0, _DEFAULT_STREAM)
    drive("cuGreenCtxStreamCreate", ctypes.byref(stream), context, _NON_BLOCKING, 0)
    yield stream.value or 0
    driver.cuStreamDestroy(stream)
    driver.cuGreenCtxDestroy(context)


@pytest.mark.parametrize("graphs", [False, True])
def test_green_stream_works_or_is_refused(graphs: bool, green_stream: int, case: Cases) -> None:
    program = case("mlp")
    values = program.calls["second"]
    module = Module(program.path, optimization_profile="auto", use_cuda_graphs=graphs)
    array = to_device(values.inputs[0])
    with CudaStreamGuard(green_stream):
        for _ in range(4):
            try:
                outputs = module.forward(array)
            except ExecuTorchError as error:
                print("refused:", error)
                break
            call("cudaStreamSynchronize", ctypes.c_void_p(green_stream))
            values.assert_is([to_host(output) for output in outputs])
    for _ in range(4):
        values.assert_is([to_host(output) for output in module.forward(array)])
