"""Process-wide profiling of packages, whose loader returns nothing that could be set.

They are the settings of `executorch_tensorrt.profiling.set_profiling` under the names that Torch-TensorRT gave its own,
and operators of these names exist as well: `torch.ops.executorch_tensorrt.set_profile_execution` and so on.
"""

# torch's operators carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import sys
from typing import Any, Literal

import torch

from executorch_tensorrt import _native

_native.register_torch_operators()

_ops: Any = torch.ops.executorch_tensorrt
_NAMES = tuple(f"{verb}_profile_{what}" for verb in ("set", "get") for what in ("path_prefix", "format", "execution"))


def set_profile_path_prefix(path_prefix: str | os.PathLike[str]) -> None:
    """Sets the folder for engines' trace files, for each engine from its next call on.

    Raises:
        ValueError: it is missing or cannot be written; nothing has changed.
    """
    _ops.set_profile_path_prefix(os.fspath(path_prefix))


def get_profile_path_prefix() -> str:
    """The folder for engines' trace files; empty if none was set."""
    return _ops.get_profile_path_prefix()


def set_profile_format(format: Literal["perfetto", "trex"]) -> None:
    """Sets the form of trace files, "perfetto" unless it is set.

    Raises:
        ValueError: it is another word.
    """
    _ops.set_profile_format(format)


def get_profile_format() -> str:
    """The form of trace files."""
    return _ops.get_profile_format()


def set_profile_execution(enabled: bool) -> None:
    """Has every engine of this process trace phases and layers from its next call on, or no longer.

    An engine's file is written when tracing ends: at its next call after a change, or when the process ends. For
    another level than "layers" use `executorch_tensorrt.profiling.set_profiling`.

    Raises:
        ValueError: no folder was set, or it cannot be written.
    """
    _ops.set_profile_execution(enabled)


def get_profile_execution() -> bool:
    """Whether engines trace."""
    return _ops.get_profile_execution()


def register_torch_tensorrt_names() -> None:
    """Registers these six under `torch.ops.tensorrt` too, for code that was written for Torch-TensorRT.

    Call it only in processes that will never load Torch-TensorRT: where its libraries bring operators of these names
    later, PyTorch aborts the process.

    Raises:
        RuntimeError: Torch-TensorRT is loaded, or the names are taken.
    """
    taken = [name for name in (*_NAMES, "execute_engine") if hasattr(torch.ops.tensorrt, name)]
    if "torch_tensorrt" in sys.modules or taken:
        got = "torch_tensorrt" if "torch_tensorrt" in sys.modules else f"torch.ops.tensorrt.{taken[0]}"
        raise RuntimeError(
            f"torch.ops.tensorrt is not ours to extend: got {got} in this process, allowed a process without "
            "Torch-TensorRT; use torch.ops.executorch_tensorrt."
        )
    _native.register_profiling_operators("tensorrt")
