"""Time and memory grow with a file, not faster. Counted are steps, not seconds: a machine may be busy."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import models
import numpy as np
import pytest
from profiling.etdump_factory import etdump_with_one_metadata
from profiling.session_factory import encoder_session, tiny_session

from executorch_tensorrt import Module
from executorch_tensorrt.profiling import from_etdump
from executorch_tensorrt.profiling.processors import compare
from executorch_tensorrt.profiling.processors.layers import MAX_SOURCES, layers
from executorch_tensorrt.profiling.renderers import console, html, render
from executorch_tensorrt.profiling.renderers import json as json_renderer
from executorch_tensorrt.profiling.renderers.page_timeline import layer_kind
from executorch_tensorrt.profiling.session import Delegate, Event, Run, Session, Source


def steps(work: Callable[[], object]) -> int:
    """How many lines of this project's code and calls of it the work takes."""
    count = 0

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += 1
        return traced if "executorch_tensorrt" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


TINY = tiny_session()
RUN, DELEGATE = TINY.runs[0], TINY.delegates[0]
assert DELEGATE.engine is not None
TWO_PROFILES = replace(DELEGATE.engine, profiles=[[[(1, 4, 8)]], [[(9, 9, 9)]]])


def delegates(count: int) -> Session:
    """That were all called, with a layer each and two optimization profiles."""
    own = [replace(DELEGATE, instruction=k, index=k, name=f"T {k}", engine=TWO_PROFILES) for k in range(count)]
    events = [RUN.events[0]]
    for k in range(count):
        at = {"start_us": 10 + k * 0.01, "duration_us": 0.01, "instruction": k}
        events.append(Event("DELEGATE_CALL", "call", **at))
        events.append(Event("torchtrt.delegate", "delegate", **at, metadata={"device_ns": 9000, "shapes": [[4]]}))
        events.append(Event(f"layer {k}", "layer", **at))
        events.append(Event("OPERATOR_CALL", "operator", **{**at, "instruction": count + k}))
    run = replace(RUN, events=events, profiles={str(k): 0 for k in range(count)})
    outside = [Delegate("forward", count + k, -1, "", "aten::x") for k in range(count)]
    return replace(TINY, delegates=[*own, *outside], runs=[run])


def methods(count: int) -> Session:
    return replace(
        TINY,
        delegates=[replace(DELEGATE, method=f"m{k}") for k in range(count)],
        runs=[replace(RUN, method=f"m{k}", number=k) for k in range(count)],
    )


def shapes(count: int) -> Session:
    runs = [replace(RUN, number=k, shapes=[[k + 1, 4]], profiles={"0": k % 7}) for k in range(count)]
    return replace(TINY, runs=runs)


def overlapping(count: int) -> Session:
    events = [Event(f"layer {k}", "layer", 10 + k * 0.01, 50.0, instruction=0) for k in range(count)]
    return replace(TINY, runs=[replace(RUN, events=[*RUN.events, *events])])


SHOWN: dict[str, Callable[[Session], object]] = {
    "console": console.render,
    "html": html.render,
    "json": json_renderer.render,
    "trex": lambda session: render(session, "trex"),
    "compare": lambda session: compare(session, session),
}


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("made", [delegates, methods, shapes, overlapping])
def test_work_grows_as_the_session_does(made: Callable[[int], Session], shown: str) -> None:
    small, large = made(60), made(240)
    SHOWN[shown](made(2))  # what is kept from the first time
    before, after = (steps(lambda session=session: SHOWN[shown](session)) for session in (small, large))
    assert after < 5.5 * before


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Convolution #1 #2", "Convolution"),
        ("L" + " #1" * 100_000, "L"),
        ("L" + " #1" * 100_000 + "x", "L" + " #1" * 100_000 + "x"),
        (" #1", ""),
        ("a #", "a #"),
        ("a #1x #2", "a #1x"),
    ],
)
def test_layer_kind_is_the_name_without_its_repetitions(name: str, kind: str) -> None:
    assert layer_kind(name, []) == kind


def test_layer_kind_searches_a_long_name_once() -> None:
    assert steps(lambda: layer_kind("L" + " #1" * 100_000 + "x", [])) < 20


def test_etdump_whose_events_share_their_metadata_is_refused() -> None:
    """24 bytes an event would stand for all of it, which is read, kept and written for each."""
    metadata = json.dumps({"shapes": [[1]] * 1000}).encode()
    program = models.rows().buffer
    with pytest.raises(ValueError, match=r"texts of all events: got \d+ bytes, allowed \d+ in a file of this size"):
        from_etdump(program, etdump_with_one_metadata(20, metadata))


def test_layers_have_a_limit_of_sources() -> None:
    count = 2 * MAX_SOURCES
    sources = {str(k): Source(f"aten.{k}") for k in range(count)}
    engine = replace(TWO_PROFILES, sources=sources, layer_handles=[{"0": list(range(count))}])
    events = [*RUN.events, Event("layer", "layer", 20.0, 1.0, instruction=0, layer_instruction=0)]
    session = replace(TINY, delegates=[replace(DELEGATE, engine=engine)], runs=[replace(RUN, events=events)])
    assert [len(layer.sources) for layer in layers(session)] == [MAX_SOURCES]


def test_trex_keeps_methods_whose_names_files_can_not_tell_apart() -> None:
    one = encoder_session(runs=1)
    names = ("a/b", "a.b")
    session = replace(
        one,
        delegates=[replace(delegate, method=name) for name in names for delegate in one.delegates],
        runs=[replace(run, method=name) for name in names for run in one.runs],
    )
    texts = render(session, "trex")
    assert len(texts) == 4
    assert all("/" not in name for name in texts)
    assert len({name.casefold() for name in texts}) == 4


def test_trace_does_not_follow_a_link_that_waits_for_it(tmp_path: Path) -> None:
    buffer = models.rows().buffer
    module = Module(buffer, profile_level="layers", profile_format="perfetto", profile_path_prefix=tmp_path)
    module.forward(np.ones((2, 4), np.float32))
    engine = module.last_selections[0].engine_id
    waiting = tmp_path / f"forward-{engine}-{os.getpid()}.perfetto.json"
    waiting.symlink_to(tmp_path / "elsewhere")
    module.unload_method("forward")
    assert not (tmp_path / "elsewhere").exists()
    assert any(path.stat().st_size for path in tmp_path.iterdir() if path.exists())


def test_session_of_few_bytes_has_no_numbers_that_nothing_can_be_done_with(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    for change in ({"profiles": {"1" * 5000: 0}}, {"number": 10**30}, {"shapes": [[2**63]]}):
        run = {**json.loads(json.dumps(RUN, default=vars)), **change}
        path.write_text(json.dumps({**json.loads(json.dumps(TINY, default=vars)), "runs": [run]}))
        with pytest.raises(ValueError, match=r"is damaged: runs\[0\]"):
            Session.load(path)


def test_metadata_of_an_event_is_json_that_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    for value in (deep, float("nan"), 10**300, {"x": float("inf")}):
        events = [Event("torchtrt.delegate", "delegate", 0.0, 1.0, metadata={"x": value})]
        text = json.dumps(replace(TINY, runs=[Run("forward", 0, 1.0, [], [], {}, events)]), default=vars)
        path.write_text(text)
        with pytest.raises(ValueError, match=r"is damaged: runs\[0\]\.events\[0\]\.metadata\.x"):
            Session.load(path)
