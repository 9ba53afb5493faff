"""TensorRT engines inside ExecuTorch: several optimization profiles per engine, chosen per call and traced.

Importing this package makes programs with TensorRT delegates loadable in this process, by :class:`Module` and by the
stock ``executorch.runtime``. It needs neither torch nor ExecuTorch's Python modules; exporting needs torch.
"""

from typing import TYPE_CHECKING, Any

from executorch_tensorrt import _build_info
from executorch_tensorrt._load import load_native

load_native()

from executorch_tensorrt._torch_operators import register_with_torch  # noqa: E402

register_with_torch()

__version__ = _build_info.VERSION

from executorch_tensorrt.inputs import Input  # noqa: E402
from executorch_tensorrt.runtime import (  # noqa: E402
    CudaStreamGuard,
    DeviceArray,
    EngineState,
    EngineStateGuard,
    ExecuTorchError,
    MethodMeta,
    Module,
    OptimizationProfileGuard,
    engine_runtimes,
)

if TYPE_CHECKING:
    from executorch_tensorrt.exporter import ExportedEngineProgram, TensorRTPartitioner, export

__all__ = [
    "CudaStreamGuard",
    "DeviceArray",
    "EngineState",
    "EngineStateGuard",
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


def _has_torch() -> bool:
    from importlib.util import find_spec

    try:
        return find_spec("torch") is not None
    except ImportError:
        return False


def __dir__() -> list[str]:
    return [name for name in __all__ if name not in _NEED_TORCH or _has_torch()]


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module 'executorch_tensorrt' has no attribute '{name}'")
    from importlib import import_module

    if not _has_torch():
        raise ImportError(f"executorch_tensorrt.{name}: exporting needs torch; install executorch-tensorrt[export]")
    exporter = import_module("executorch_tensorrt.exporter")
    for exported in _NEED_TORCH:
        globals()[exported] = getattr(exporter, exported)
    return globals()[name]
