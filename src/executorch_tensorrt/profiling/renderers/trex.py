"""Layer times as TREX (trt-engine-explorer) and trtexec write them: one file per engine."""

from __future__ import annotations

import json
import re

from executorch_tensorrt.profiling.processors import Layer, layers, regions
from executorch_tensorrt.profiling.processors.times import grouped
from executorch_tensorrt.profiling.session import Session


def render(session: Session) -> dict[str, str]:
    """Texts by file name, for each engine that reported layers.

    Layers of optimization profiles above 0 are named as TensorRT names them, with " [profile N]" at the end.
    """
    rows = grouped(layers(session), lambda row: row.delegate.place)
    texts: dict[str, str] = {}
    for region in regions(session):
        delegate = region.delegate
        own = rows.get(delegate.place, [])
        if delegate.engine is None or not own:
            continue
        stem = f"{_safe(delegate.method)}-{_safe(delegate.engine.engine_id or 'engine')}-{delegate.index}"
        if f"{stem}.trex.json" in texts:  # of another method, whose name differs in characters that files lack
            stem += f"-{len(texts) + 1}"
        texts[f"{stem}.trex.json"] = json.dumps([{"count": region.time.count}, *_records(own)], allow_nan=False)
    return texts


def _records(own: list[Layer]) -> list[dict[str, str | float]]:
    total = sum(row.time.total_us for row in own)
    return [
        {
            "name": row.name + (f" [profile {row.profile}]" if row.profile else ""),
            "timeMs": row.time.total_us / 1e3,
            "averageMs": row.time.total_us / row.time.count / 1e3,
            "medianMs": row.time.median_us / 1e3,
            "percentage": 100 * row.time.total_us / total if total else 0.0,
        }
        for row in own
    ]


def _safe(name: str) -> str:
    """As part of a file name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80] or "_"
