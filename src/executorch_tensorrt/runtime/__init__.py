"""Running programs: needs no torch."""

from executorch_tensorrt._native import ExecuTorchError, MethodMeta, engine_runtimes, take_last_error
from executorch_tensorrt.runtime.guard import OptimizationProfileGuard
from executorch_tensorrt.runtime.module import Module
from executorch_tensorrt.runtime.state import EngineState, EngineStateGuard

__all__ = [
    "EngineState",
    "EngineStateGuard",
    "ExecuTorchError",
    "MethodMeta",
    "Module",
    "OptimizationProfileGuard",
    "engine_runtimes",
    "take_last_error",
]
