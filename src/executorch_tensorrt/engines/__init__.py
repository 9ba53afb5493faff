"""Engine kinds: what builds and runs the bytes inside a delegate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executorch_tensorrt.engines.builder import EngineBuilder


def _cpu(options: Mapping[str, Any], cache: Path | None) -> EngineBuilder:
    from executorch_tensorrt.engines.cpu.builder import CpuEngineBuilder

    if cache is not None:
        raise ValueError(
            "engine_cache is not for every engine: got engine 'cpu', allowed 'tensorrt', 'tensorrt_rtx'; leave it out."
        )
    return CpuEngineBuilder(options)


def _tensorrt(kind: str, options: Mapping[str, Any], cache: Path | None) -> EngineBuilder:
    try:
        from executorch_tensorrt.engines.tensorrt.builder import TensorRTEngineBuilder
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("onnx", "onnx_ir", "onnxscript"):
            raise
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got no Python module '{error.name}', wanted what turns models into "
            "ONNX; pip install 'executorch-tensorrt[tensorrt]'."
        ) from error
    return TensorRTEngineBuilder(kind, options, cache)


_BUILDERS: dict[str, Callable[[Mapping[str, Any], Path | None], EngineBuilder]] = {
    "cpu": _cpu,
    "tensorrt": partial(_tensorrt, "tensorrt"),
    "tensorrt_rtx": partial(_tensorrt, "tensorrt_rtx"),
}


def engine_builder(kind: str, options: Mapping[str, Any], cache: Path | None) -> EngineBuilder:
    """The builder of an engine kind.

    Args:
        kind: the engine kind.
        options: the exporter's `engine_options`.
        cache: the folder of the engine cache, if there is one.

    Raises:
        ValueError: no builder has that name, an option is wrong, or the kind has no cache.
        RuntimeError: it can't work here: a package is missing, or a GPU.
    """
    if kind not in _BUILDERS:
        allowed = ", ".join(f"'{name}'" for name in _BUILDERS)
        raise ValueError(f"engine is not known: got {kind!r}, allowed {allowed}; choose one of them.")
    return _BUILDERS[kind](options, cache)
