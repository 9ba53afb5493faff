"""Engine kinds: what builds and runs the bytes inside a delegate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from executorch_tensorrt.engines.builder import EngineBuilder


def _cpu() -> EngineBuilder:
    from executorch_tensorrt.engines.cpu.builder import CpuEngineBuilder

    return CpuEngineBuilder()


_BUILDERS: dict[str, Callable[[], EngineBuilder]] = {"cpu": _cpu}


def engine_builder(kind: str) -> EngineBuilder:
    """The builder of an engine kind.

    Raises:
        ValueError: no builder has that name.
    """
    if kind not in _BUILDERS:
        allowed = ", ".join(f"'{name}'" for name in _BUILDERS)
        raise ValueError(f"engine is not known: got {kind!r}, allowed {allowed}; choose one of them.")
    return _BUILDERS[kind]()
