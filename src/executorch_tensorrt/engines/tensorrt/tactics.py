"""Where TensorRT may take kernels from."""

# The bindings come without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import logging
from typing import Any

_log = logging.getLogger(__name__)

# Of the CUDA releases that TensorRT 8 was made for.
_LIBRARIES = {
    "CUBLAS": ("libcublas.so.12", "libcublas.so.11"),
    "CUBLAS_LT": ("libcublasLt.so.12", "libcublasLt.so.11"),
    "CUDNN": ("libcudnn.so.8",),
}


def leave_out_missing_libraries(module: Any, config: Any) -> None:
    """Have TensorRT do without kernels of libraries that are not here: 8.6 counts on all of them, and fails."""
    sources = module.TacticSource.__members__
    before = kept = config.get_tactic_sources()
    for name, files in _LIBRARIES.items():
        bit = 1 << int(sources[name]) if name in sources else 0
        if kept & bit and not any(map(_loads, files)):
            _log.info("no kernels of %s: no %s", name, " or ".join(files))
            kept &= ~bit
    if kept != before:
        config.set_tactic_sources(kept)


def _loads(file: str) -> bool:
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True
