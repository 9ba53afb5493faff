"""Making very many objects at once."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Generator[None, None, None]:
    """Pauses the garbage collector: its passes over objects that are all in use take most of the time else."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
