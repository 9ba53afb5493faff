"""TensorRT engines inside ExecuTorch: several optimization profiles per engine, chosen per call and traced.

Importing this package makes programs with TensorRT delegates loadable in this process, by :class:`Module` and by the
stock ``executorch.runtime``. It needs neither torch nor ExecuTorch's Python modules; exporting needs torch.
"""

from typing import TYPE_CHECKING, Any

from executorch_tensorrt._build_info import VERSION as __version__
from executorch_tensorrt._load import load_native

load_native()

from executorch_tensorrt.inputs import Input  # noqa: E402
from executorch_tensorrt.runtime import (  # noqa: E402
    ExecuTorchError,
    MethodMeta,
    Module,
    OptimizationProfileGuard,
    engine_runtimes,
)

if TYPE_CHECKING:
    from executorch_tensorrt.export import ExportedEngineProgram, TensorRTPartitioner, export

__all__ = [
    "ExecuTorchError",
    "ExportedEngineProgram",
    "Input",
    "MethodMeta",
    "Module",
    "OptimizationProfileGuard",
    "TensorRTPartitioner",
    "__version__",
    "engine_runtimes",
    "export",
]

_NEED_TORCH = ("ExportedEngineProgram", "TensorRTPartitioner", "export")


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module 'executorch_tensorrt' has no attribute '{name}'")
    from importlib import import_module

    exporter = import_module("executorch_tensorrt.export")

    for exported in _NEED_TORCH:
        globals()[exported] = getattr(exporter, exported)
    return globals()[name]
