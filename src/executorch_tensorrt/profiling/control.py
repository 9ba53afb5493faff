"""Process-wide profiling control: what every engine of this process traces, changed while programs are loaded."""

from __future__ import annotations

import os

from executorch_tensorrt import _native
from executorch_tensorrt._native import ProfilingState
from executorch_tensorrt.runtime.log import forward_messages


def set_profiling(level: str, *, format: str = "etdump", path_prefix: str | os.PathLike[str] = "") -> None:
    """Makes every engine of this process trace at this level, from its next call on, whatever it was loaded with.

    Args:
        level: "off", "delegate", "phases" or "layers".
        format: "etdump", or "perfetto" and "trex", which write a file per engine as well: when the settings change
            again and the engine is called, or when its method is unloaded.
        path_prefix: the folder for those files. It has to exist.

    Raises:
        ValueError: a value is wrong, or the folder cannot be written; nothing has changed.
    """
    try:
        _native.set_profiling(level, format, os.fspath(path_prefix))
    finally:
        forward_messages()


def clear_profiling() -> None:
    """Lets methods trace what they were loaded with again."""
    _native.clear_profiling()


def profiling_state() -> ProfilingState:
    """The control's values, whether it is set, and how often it has changed (its generation)."""
    return _native.profiling_state()
