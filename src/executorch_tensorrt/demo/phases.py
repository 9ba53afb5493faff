"""From ETDumps to a time for each phase, with ExecuTorch's own Inspector."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from executorch_tensorrt.events import EVENT_PREFIX


def phase_times(etdump: Path, etrecord: Path) -> dict[str, list[float]]:
    """Microseconds of each `torchtrt.*` event of each call, in the order in which the phases begin.

    Raises:
        RuntimeError: an event is not tied to the program's operators.
    """
    # ExecuTorch's developer tools have no types.
    inspector_module: Any = import_module("executorch.devtools.inspector")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inspector: Any = inspector_module.Inspector(
            str(etdump), etrecord=str(etrecord), target_time_scale=inspector_module.TimeScale.US
        )
    times: dict[str, list[float]] = {}
    for block in inspector.event_blocks:
        for event in block.events:
            if event.name.startswith(EVENT_PREFIX) and event.perf_data is not None:
                if not event.op_types:
                    raise RuntimeError(f"event '{event.name}' is tied to no operator of '{etrecord}'")
                times.setdefault(event.name.removeprefix(EVENT_PREFIX), []).extend(event.perf_data.raw)
    return times


def medians(times: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The median of each phase."""
    return {phase: median(values) for phase, values in times.items()}


def merged(parts: Iterable[Mapping[str, list[float]]]) -> dict[str, list[float]]:
    """The calls of several dumps together."""
    times: dict[str, list[float]] = {}
    for part in parts:
        for phase, values in part.items():
            times.setdefault(phase, []).extend(values)
    return times
