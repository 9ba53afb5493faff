"""PyTorch's own packages (`.pt2`, from AOTInductor) with engines inside; needs torch.

A process that runs packages imports no more than `executorch_tensorrt` beside torch, unless their engines are large.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from executorch_tensorrt.aoti.controls import (
    get_profile_execution,
    get_profile_format,
    get_profile_path_prefix,
    register_torch_tensorrt_names,
    set_profile_execution,
    set_profile_format,
    set_profile_path_prefix,
)
from executorch_tensorrt.aoti.loading import load

if TYPE_CHECKING:
    from executorch_tensorrt.aoti.compiling import CompiledModule, compile
    from executorch_tensorrt.aoti.saving import save

__all__ = [
    "CompiledModule",
    "compile",
    "get_profile_execution",
    "get_profile_format",
    "get_profile_path_prefix",
    "load",
    "register_torch_tensorrt_names",
    "save",
    "set_profile_execution",
    "set_profile_format",
    "set_profile_path_prefix",
]

# Loading needs none of the exporter.
_OF_THE_EXPORTER = {"CompiledModule": "compiling", "compile": "compiling", "save": "saving"}


def __getattr__(name: str) -> Any:
    if name not in _OF_THE_EXPORTER:
        raise AttributeError(f"module 'executorch_tensorrt.aoti' has no attribute '{name}'")
    return getattr(import_module(f"executorch_tensorrt.aoti.{_OF_THE_EXPORTER[name]}"), name)
