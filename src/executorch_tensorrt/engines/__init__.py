"""Engine kinds: what builds and runs the bytes inside a delegate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from executorch_tensorrt.engines.builder import EngineBuilder


def _cpu() -> EngineBuilder:
    from executorch_tensorrt.engines.cpu.builder import CpuEngineBuilder

    return CpuEngineBuilder()


def _tensorrt(kind: str) -> EngineBuilder:
    try:
        from executorch_tensorrt.engines.tensorrt.builder import TensorRTEngineBuilder
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("onnx", "onnx_ir", "onnxscript"):
            raise
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got no Python module '{error.name}', wanted what turns models into "
            "ONNX; pip install 'executorch-tensorrt[tensorrt]'."
        ) from error
    return TensorRTEngineBuilder(kind)


_BUILDERS: dict[str, Callable[[], EngineBuilder]] = {
    "cpu": _cpu,
    "tensorrt": partial(_tensorrt, "tensorrt"),
    "tensorrt_rtx": partial(_tensorrt, "tensorrt_rtx"),
}


def engine_builder(kind: str) -> EngineBuilder:
    """The builder of an engine kind.

    Raises:
        ValueError: no builder has that name.
        RuntimeError: it can't work here: a package is missing, or a GPU.
    """
    if kind not in _BUILDERS:
        allowed = ", ".join(f"'{name}'" for name in _BUILDERS)
        raise ValueError(f"engine is not known: got {kind!r}, allowed {allowed}; choose one of them.")
    return _BUILDERS[kind]()
