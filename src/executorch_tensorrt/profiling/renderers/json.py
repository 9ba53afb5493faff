"""The report's figures as JSON, for scripts."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from executorch_tensorrt.profiling import processors
from executorch_tensorrt.profiling.processors import Advice, Comparison
from executorch_tensorrt.profiling.processors.advice.variables import columns_of
from executorch_tensorrt.profiling.renderers.advice.code import command_line, python_code
from executorch_tensorrt.profiling.session import Delegate, Session

FORMAT = 1


def render(session: Session) -> str:
    """All processors' results. Delegates are told apart by method and instruction; times are microseconds."""
    runs = {
        "program": session.program,
        "level": session.level,
        "machine": session.machine,
        "versions": session.versions,
        "created": session.created,
        "runs": len(session.runs),
        "startup": session.startup,
        "notes": session.notes,
    }
    results = {
        "regions": processors.regions(session),
        "phases": processors.phases(session),
        "device_times": processors.device_times(session),
        "layers": processors.layers(session),
        "gaps": processors.gaps(session),
        "profiles": processors.profile_costs(session),
        "spread": processors.spread(session),
        "findings": processors.findings(session),
    }
    return _text({"format": FORMAT, **runs, **results})


def render_comparison(comparison: Comparison) -> str:
    """What changed between two sessions."""
    return _text({"format": FORMAT, "differences": comparison.differences, "changes": comparison.changes})


def render_advice(advice: Advice) -> str:
    """Proposed optimization profiles. Their `ranges` are (min, opt, max) of each of the `variables`."""
    recorded = [[int(column.min()), int(column.max())] for column in columns_of(advice.calls.sizes)]
    variables = [
        {"name": item.name, "dims": item.places, "today": item.today, "recorded": span}
        for item, span in zip(advice.calls.variables, recorded, strict=True)
    ]
    about = {"program": advice.program, "method": advice.calls.method, "calls": len(advice.served)}
    results = {
        "variables": variables,
        "profiles": advice.profiles,
        "today": advice.today,
        "chosen": advice.chosen,
        "choices": advice.choices,
        "gain": advice.gain,
        "basis": advice.basis,
        "notes": advice.notes,
        "code": python_code(advice),
        "export_inputs": command_line(advice),
    }
    return _text({"format": FORMAT, **about, **results})


def _text(value: Mapping[str, object]) -> str:
    return json.dumps(_plain(value), indent=1, allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, Delegate):
        engine = value.engine.engine_id if value.engine else None
        place = {"method": value.method, "instruction": value.instruction, "index": value.index}
        return {**place, "name": value.name, "backend": value.backend_id, "engine": engine}
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value
