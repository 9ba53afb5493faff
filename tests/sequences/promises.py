"""What sequences expect although it is not kept everywhere yet: each is switched on with the change that keeps it.

The environment variable PROMISES names more of them, with commas, for a run.
"""

from __future__ import annotations

import os

_TRIED = os.environ.get("PROMISES", "").split(",")

OUTPUTS_CARRY_EVENT = "OUTPUTS_CARRY_EVENT" in _TRIED
"""Reading an output waits for it by itself, on any stream and thread. Else a sequence waits for its stream first."""

INTERRUPTS_ARRIVE = "INTERRUPTS_ARRIVE" in _TRIED
"""KeyboardInterrupt in an engine's Python reaches the caller. Else engines raise none."""

STAGED_INPUTS_ARE_ORDERED = "STAGED_INPUTS_ARE_ORDERED" in _TRIED
"""A host array beside device arrays is as ordered as those are. Else a sequence waits before such a call."""

GARBAGE_MAY_END_ANYWHERE = "GARBAGE_MAY_END_ANYWHERE" in _TRIED
"""A module that is garbage may be collected while an engine's Python runs, also while a graph is recorded."""
