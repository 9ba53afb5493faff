"""Tells the native core of the TensorRTs that are installed, and imports them only when an engine needs one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from executorch_tensorrt.engines.tensorrt.target import NAMES

if TYPE_CHECKING:
    from executorch_tensorrt.engines.tensorrt.runtime import PlanEngine


def register_runtimes(register: Callable[[str, Callable[..., PlanEngine]], None]) -> None:
    """Call `register` with each engine kind that is installed and its function to load an engine; see `load_engine`."""
    for kind in NAMES:
        if find_spec(kind) is not None:
            register(kind, partial(_load, kind))


def _load(kind: str, plan: memoryview, builder: str, inputs: list[str], outputs: list[str]) -> PlanEngine:
    from executorch_tensorrt.engines.tensorrt.runtime import load_engine

    return load_engine(kind, plan, builder, inputs, outputs)
