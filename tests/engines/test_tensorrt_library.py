"""What is said where TensorRT, a package or a GPU is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from executorch_tensorrt import Input, export
from executorch_tensorrt.engines.tensorrt.library import load_bindings, load_library


@pytest.fixture(autouse=True)
def _libraries_are_loaded_anew() -> Iterator[None]:
    for cached in (load_library, load_bindings):
        cached.cache_clear()
    yield
    for cached in (load_library, load_bindings):
        cached.cache_clear()


class NoGpu:
    """A builder as TensorRT's own on a machine without a GPU: it logs why, and is not made."""

    def __init__(self, log: Any) -> None:
        log.log(SimpleNamespace(name="ERROR"), "CUDA initialization failure with error: 35")
        raise TypeError("factory function returned nullptr")


def export_with(engine: str) -> None:
    export(torch.nn.ReLU(), [Input(shape=(2, 4))], engine=engine)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("tensorrt", "install NVIDIA's tensorrt package of the version that the target machine has"),
        ("tensorrt_rtx", r"pip install 'executorch-tensorrt\[tensorrt\]'"),
    ],
)
def test_missing_library_is_named_with_what_to_install(kind: str, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(
        RuntimeError, match=f"engine '{kind}' can't be built here: got no Python module '{kind}'.*{advice}"
    ):
        export_with(kind)


def test_missing_exporter_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("executorch_tensorrt.engines.tensorrt.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx_ir", None)
    with pytest.raises(
        RuntimeError, match=r"got no Python module 'onnx_ir'.*pip install 'executorch-tensorrt\[tensorrt\]'"
    ):
        export_with("tensorrt_rtx")


def test_missing_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(__version__="10.9.0", Builder=NoGpu, ILogger=object)
    monkeypatch.setitem(sys.modules, "tensorrt", module)  # type: ignore[arg-type]
    with pytest.raises(
        RuntimeError, match=r"TensorRT 10.9.0 \(CUDA initialization failure.*wanted a machine with an NVIDIA GPU"
    ):
        export_with("tensorrt")


@pytest.mark.parametrize(("version", "opset"), [("8.6.1", 17), ("10.0.1", 20), ("11.0.0", 20)])
def test_operator_set_is_one_that_the_parser_knows(version: str, opset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(__version__=version, Builder=lambda log: object(), ILogger=object)
    monkeypatch.setitem(sys.modules, "tensorrt", module)  # type: ignore[arg-type]
    assert load_library("tensorrt").opset == opset


def test_building_from_onnx_needs_no_torch(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """A machine with the GPU but without torch can build."""
    result = run_python(
        "import sys; from executorch_tensorrt.engines.tensorrt import build_requests, cache, network\n"
        "assert not {'torch', 'onnx', 'onnx_ir'} & set(sys.modules)"
    )
    assert result.returncode == 0, result.stderr
