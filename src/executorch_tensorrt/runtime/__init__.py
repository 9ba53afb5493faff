"""Running programs: needs no torch."""

from executorch_tensorrt._native import DeviceArray, ExecuTorchError, MethodMeta, engine_runtimes, take_last_error
from executorch_tensorrt.runtime.guard import OptimizationProfileGuard
from executorch_tensorrt.runtime.module import Module
from executorch_tensorrt.runtime.state import EngineState, EngineStateGuard
from executorch_tensorrt.runtime.stream import CudaStreamGuard

__all__ = [
    "CudaStreamGuard",
    "DeviceArray",
    "EngineState",
    "EngineStateGuard",
    "ExecuTorchError",
    "MethodMeta",
    "Module",
    "OptimizationProfileGuard",
    "engine_runtimes",
    "take_last_error",
]
