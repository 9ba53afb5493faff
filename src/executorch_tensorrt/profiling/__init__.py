"""Profiling: capture runs of a program, look at what they did, and change what engines trace.

The steps are capture, session, processors and renderers; each can be used alone.
"""

from executorch_tensorrt.profiling.capture import capture, from_etdump, merge
from executorch_tensorrt.profiling.control import clear_profiling, profiling_state, set_profiling
from executorch_tensorrt.profiling.session import Session

__all__ = ["Session", "capture", "clear_profiling", "from_etdump", "merge", "profiling_state", "set_profiling"]
