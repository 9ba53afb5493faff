"""The native library's messages, as records of Python's logging.

They are fetched at calls from Python, never sent from the thread that has one: it may run without the GIL, and hold
what another thread with the GIL waits for.
"""

from __future__ import annotations

import atexit
import logging

from executorch_tensorrt import _native
from executorch_tensorrt.words import printable

_log = logging.getLogger("executorch_tensorrt.runtime")
# Where logging is not set up, Python would print the records; ExecuTorch's log has done so.
_log.addHandler(logging.NullHandler())
_native.keep_messages()


def forward_messages() -> None:
    """Logs what the native library had to say since the last time, whatever thread it was on."""
    if _native.has_messages():
        for level, text in _native.take_messages():
            _log.log(level, "%s", printable(text))


atexit.register(forward_messages)
