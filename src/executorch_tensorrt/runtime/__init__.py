"""Running programs: needs no torch."""

from executorch_tensorrt._native import ExecuTorchError, MethodMeta, engine_runtimes
from executorch_tensorrt.runtime.guard import OptimizationProfileGuard
from executorch_tensorrt.runtime.module import Module

__all__ = ["ExecuTorchError", "MethodMeta", "Module", "OptimizationProfileGuard", "engine_runtimes"]
