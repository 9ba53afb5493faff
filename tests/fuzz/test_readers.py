"""Readers of files in Python: whatever is in them, the answer is one, or a ValueError in words.

`FROM=7 COUNT=1 pytest tests/fuzz/test_readers.py` does one case again.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest
from engines.cache_entries import JOB, PLAN
from fuzz.mutators import damaged_bytes, damaged_json, written
from profiling.etdump_factory import Span, delegate_span, etdump_of
from profiling.session_factory import called_session, encoder_session, tiny_session

from executorch_tensorrt.cli.values import parse_value
from executorch_tensorrt.engines.tensorrt import build_requests
from executorch_tensorrt.engines.tensorrt.cache import Entry, Refused, entry_for
from executorch_tensorrt.engines.tensorrt.job import BuildJob
from executorch_tensorrt.profiling import Session, capture, from_etdump, merge
from executorch_tensorrt.profiling.processors import advise, compare
from executorch_tensorrt.profiling.renderers import RENDERERS, console, render
from executorch_tensorrt.profiling.renderers import json as json_renderer
from executorch_tensorrt.profiling.renderers.advice import console as advice_console
from executorch_tensorrt.profiling.renderers.advice import page
from executorch_tensorrt.profiling.traces import from_traces

FROM, COUNT = int(os.environ.get("FROM", "0")), int(os.environ.get("COUNT", "0"))


def cases(count: int) -> Iterator[random.Random]:
    """Random numbers of each case; the first ones in a run of all tests."""
    return (random.Random(seed) for seed in range(FROM, FROM + (COUNT or count)))


def show_everything(session: Session) -> None:
    """Everything that the commands show of a session. What they refuse, they refuse in words."""
    for renderer in RENDERERS:
        for text in render(session, renderer).values():
            text.encode()
    changed = compare(session, tiny_session())
    console.render_comparison(changed)
    json_renderer.render_comparison(changed)
    with_words(lambda: merge([session]))
    advice = with_words(lambda: advise([session]))
    if advice is not None:
        for text in (json_renderer.render_advice(advice), advice_console.render(advice), page.render(advice)):
            text.encode()


def with_words(read: Callable[[], Any]) -> Any:
    """What it gives; None where it refuses."""
    try:
        return read()
    except ValueError as error:
        # Not what Python, NumPy or a codec says.
        assert type(error) is ValueError or type(error).__module__.startswith("executorch_tensorrt"), repr(error)
        assert "Exceeds the limit" not in str(error)
        return None


SESSIONS: Sequence[Session] = (
    tiny_session(),
    encoder_session(runs=2, blocks=1),
    encoder_session(runs=2, blocks=1, kind="tensorrt"),
    called_session([((1, 8), 90.0, 0), ((2, 40), 180.0, 0), ((2, 41), 190.0, 1)], [((1, 2, 4), (1, 8, 64))] * 2),
)


def test_session_is_shown_or_refused(tmp_path: Path) -> None:
    plain = [json.loads(json.dumps(session, default=vars)) for session in SESSIONS]
    path = tmp_path / "session.json"
    shown = 0
    for rng in cases(150):
        path.write_bytes(written(damaged_json(rng.choice(plain), rng), rng))
        session = with_words(lambda: Session.load(path))
        if session is not None:
            show_everything(session)
            shown += 1
    assert shown or COUNT


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, list[Any]]:
    """A program, an ETDump of it at level layers, and the traces of its engines."""
    folder = tmp_path_factory.mktemp("recorded")
    program = models.rows().buffer
    sets = [(np.ones((2, 4), np.float32),), (np.ones((40, 4), np.float32),)]
    capture(program, sets, runs=3, level="layers", format="perfetto", output=folder)
    traces = [json.loads(path.read_text()) for path in sorted(folder.glob("*.perfetto.json"))]
    for trace in traces:  # each run of the test has the same cases
        for place, event in enumerate(trace["traceEvents"]):
            event.update({"pid": 1} if event["ph"] == "M" else {"pid": 1, "ts": 10.0 * place, "dur": 5.0})
    spans = [
        Span("Method::execute", 0, 90_000, chain=-1),
        Span("DELEGATE_CALL", 1_000, 80_000),
        delegate_span("torchtrt.delegate", 2_000, 70_000, 0, b'{"profile":1,"shapes":[[2,4]],"staged_bytes":64}'),
        delegate_span("torchtrt.enqueue_host", 3_000, 60_000),
        delegate_span("Fully Connected #1", 4_000, 50_000, 0, b'{"instruction":0,"clock":"host"}'),
    ]
    later = [replace(span, end=2 * span.end) for span in spans]
    return program, etdump_of([("Default", []), ("Execute", spans), ("Execute", later), ("Execute", spans)]), traces


def test_etdump_is_shown_or_refused(recorded: tuple[bytes, bytes, list[Any]]) -> None:
    program, dump, _ = recorded
    shown = 0
    for rng in cases(250):
        session = with_words(partial(from_etdump, program, damaged_bytes(dump, rng)))
        if session is not None:
            show_everything(session)
            shown += 1
    assert shown or COUNT


def test_trace_is_shown_or_refused(recorded: tuple[bytes, bytes, list[Any]], tmp_path: Path) -> None:
    traces = recorded[2]
    shown = 0
    for rng in cases(200):
        for number, trace in enumerate(traces):
            (tmp_path / f"{number}.perfetto.json").write_bytes(written(damaged_json(trace, rng), rng))
        session = with_words(lambda: from_traces(tmp_path))
        if session is not None:
            show_everything(session)
            shown += 1
    assert shown or COUNT


def test_metadata_of_a_page_is_shown_or_refused(tmp_path: Path) -> None:
    """What a delegate says of itself goes into the page as it comes."""
    path = tmp_path / "session.json"
    metadata = {"engine_kind": "cpu", "profile": 0, "request": "auto", "staged_bytes": 64, "device_ns": 5000,
                "shapes": [[1, 4]], "layers_dropped": 0, "returned_early": False}  # fmt: skip
    shown = 0
    for rng in cases(150):
        plain = json.loads(json.dumps(encoder_session(runs=1, blocks=1, kind="tensorrt"), default=vars))
        events = plain["runs"][0]["events"]
        for event in events:
            event["metadata"] = metadata
        for event in rng.sample(events, 3):
            event["metadata"] = damaged_json(metadata, rng)
        path.write_bytes(json.dumps(plain).encode())
        session = with_words(lambda: Session.load(path))
        if session is not None:
            show_everything(session)
            shown += 1
    assert shown or COUNT


def put(entry: Entry, name: str, value: Any, rng: random.Random) -> None:
    (entry.folder / name).write_bytes(written(value, rng))


def test_cache_entry_is_taken_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the digests that its author would compute as well: the key of a request, what is written beside a plan."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.onnx").write_bytes(b"graph")
    monkeypatch.setattr(build_requests, "build_plan", lambda *_: PLAN)
    monkeypatch.setattr(build_requests, "current_gpu", lambda: "")
    request = json.loads(JOB.to_json())
    accepted = 0
    for number, rng in enumerate(cases(300)):
        changed = damaged_json(request, rng) if rng.random() < 0.7 else request
        job = with_words(partial(BuildJob.from_json, json.dumps(changed)))
        accepted += job is not None
        entry = entry_for(tmp_path / f"cache_{number}", JOB if job is None else job, model)
        entry.put_request(JOB, model)
        if rng.random() < 0.5:
            entry.plan_or_build(lambda: PLAN)
            record = json.loads((entry.folder / "engine.json").read_text())
            digest, key = record["sha256"], record["key"]
            record = damaged_json(record, rng)
            put(
                entry,
                "engine.json",
                {**record, "sha256": digest, "key": key} if isinstance(record, dict) else record,
                rng,
            )
        else:
            entry.put_refusal(Refused("no", {"node_y": "no"}))
            put(entry, "refusal.json", damaged_json({"message": "no", "reasons": {"node_y": "no"}}, rng), rng)
        put(entry, "request.json", changed, rng)
        for read in (entry.request, entry.plan, entry.refused):
            with_words(read)
        (outcome,) = build_requests.build_requests(tmp_path / f"cache_{number}", lambda text: None)
        assert outcome.status in ("built", "present", "refused", "failed")
        assert not outcome.error.startswith(("TypeError", "KeyError", "AttributeError", "IndexError", "Recursion"))
    assert accepted or COUNT


def test_array_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(8, dtype=np.float32).reshape(2, 4))
    data = path.read_bytes()
    for rng in cases(500):
        path.write_bytes(damaged_bytes(data, rng))
        try:
            with_words(lambda: parse_value(str(path), 0, np.random.default_rng(0)))
        except MemoryError:
            continue


@pytest.mark.parametrize("depth", [100, 5000, 100_000])
def test_deep_json_is_refused_in_words(depth: int, tmp_path: Path) -> None:
    text = '{"x":' * depth + "1" + "}" * depth
    (tmp_path / "x.perfetto.json").write_text(text)
    for read in (Session.load, from_traces):
        with pytest.raises(ValueError, match=r"x\.perfetto\.json"):
            read(tmp_path / "x.perfetto.json")
    with pytest.raises(ValueError, match="the build request can't be read"):
        BuildJob.from_json(text)


def test_modules_of_any_depth_are_shown() -> None:
    session = encoder_session(runs=1)
    engine = session.delegates[1].engine
    assert engine is not None
    sources = {handle: replace(source, module="m." * 5000 + "x") for handle, source in engine.sources.items()}
    delegate = replace(session.delegates[1], engine=replace(engine, sources=sources))
    show_everything(replace(session, delegates=[delegate]))
