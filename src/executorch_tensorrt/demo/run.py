"""The whole demo: export, embed, compare, account for the time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from executorch_tensorrt.demo.encoder import Encoder, declared_inputs, load_encoder
from executorch_tensorrt.demo.kept import KeptExport, kept_export, versions
from executorch_tensorrt.demo.phases import medians, merged, phase_times
from executorch_tensorrt.demo.search import Embedded, best_matches, embed
from executorch_tensorrt.demo.texts import PASSAGES, QUERIES
from executorch_tensorrt.files import write_atomically
from executorch_tensorrt.profiling import capture
from executorch_tensorrt.profiling.renderers.html import render
from executorch_tensorrt.runtime import Module


def run_demo(folder: Path, step: Callable[[str], None], load: Callable[[], Encoder] = load_encoder) -> dict[str, Any]:
    """Runs the demo and writes `summary.json`, `session.json` and `report.html` into `folder`.

    Args:
        folder: where the program, its ETRecord, two ETDumps, the summary, the profile and its report go.
        step: called with a line of text when a step begins.
        load: makes the encoder.

    Returns:
        The summary: `max_abs_error` against eager PyTorch, `profiles_used`, `queries` (each with `query`, `best`,
        `score` and `profile`), `export_seconds`, `phases_us` (medians over all calls) and `phases_us_by_profile`,
        `sizes` in bytes, `versions`.

    Raises:
        OSError: the folder cannot be written.
    """
    started = time.perf_counter()
    step("loading MiniLM")
    encoder = load()
    kept = kept_export(folder, lambda: encoder.model, declared_inputs(), step)
    step(f"embedding {len(PASSAGES)} passages and {len(QUERIES)} queries")
    module = Module(kept.program, optimization_profile="auto", profile_level="phases")
    queries = embed(module, encoder, QUERIES, folder / "queries.etdp")
    passages = embed(module, encoder, [passage.text for passage in PASSAGES], folder / "passages.etdp")
    step("comparing with eager PyTorch")
    error = _largest_difference(encoder, queries, passages)
    step("profiling layers, and writing the report")
    _write_report(folder, kept, encoder)
    step("reading the ETDumps with ExecuTorch's Inspector")
    summary = {
        "max_abs_error": error,
        "profiles_used": sorted({*queries.profiles, *passages.profiles}),
        "queries": _answers(queries, passages),
        "passages": [
            {"title": p.title, "profile": index} for p, index in zip(PASSAGES, passages.profiles, strict=True)
        ],
        "export_seconds": sum(kept.seconds.values()),
        "export_reused": kept.reused,
        **_phases(queries, passages, kept),
        "sizes": {path.name: path.stat().st_size for path in (kept.program, kept.etrecord)},
        "versions": versions(),
        "seconds": time.perf_counter() - started,
    }
    write_atomically(folder / "summary.json", f"{json.dumps(summary, indent=2)}\n".encode())
    return summary


def _write_report(folder: Path, kept: KeptExport, encoder: Encoder) -> None:
    texts = [*QUERIES, *(passage.text for passage in PASSAGES[: len(QUERIES)])]
    session = capture(kept.program, [encoder.tokens(text) for text in texts], runs=2 * len(texts), warmup=1)
    session.save(folder)
    write_atomically(folder / "report.html", render(session).encode())


def _largest_difference(encoder: Encoder, queries: Embedded, passages: Embedded) -> float:
    texts = [*QUERIES, *(passage.text for passage in PASSAGES)]
    eager = np.concatenate([encoder.eager(encoder.tokens(text)) for text in texts])
    return float(np.abs(eager - np.concatenate([queries.vectors, passages.vectors])).max())


def _answers(queries: Embedded, passages: Embedded) -> list[dict[str, Any]]:
    matches = best_matches(queries.vectors, passages.vectors)
    return [
        {"query": query, "best": PASSAGES[index].title, "score": score, "profile": profile}
        for query, (index, score), profile in zip(QUERIES, matches, queries.profiles, strict=True)
    ]


def _phases(queries: Embedded, passages: Embedded, kept: KeptExport) -> dict[str, Any]:
    by_profile: dict[str, dict[str, list[float]]] = {}
    for part in (queries, passages):
        times = phase_times(part.etdump, kept.etrecord)
        # Every text of a dump takes the same profile: the texts were written so.
        index = str(part.profiles[0])
        by_profile[index] = merged([by_profile.get(index, {}), times])
    return {
        "phases_us": medians(merged(by_profile.values())),
        "phases_us_by_profile": {index: medians(times) for index, times in by_profile.items()},
    }
