"""A machine without TensorRT."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

from executorch_tensorrt.engines.tensorrt import library


@contextmanager
def without(*kinds: str) -> Generator[None]:
    """As where these Python modules are not installed."""
    loaders = {name: getattr(library, name).__wrapped__ for name in ("load_bindings", "load_library")}
    with patch.dict(sys.modules, dict.fromkeys(kinds)), patch.multiple(library, **loaders):
        yield
