"""Console, JSON, Perfetto and TREX, from one session each."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from profiling.session_factory import encoder_session, renamed, tiny_session

from executorch_tensorrt.profiling.processors import compare
from executorch_tensorrt.profiling.renderers import RENDERERS, console, perfetto, render, trex
from executorch_tensorrt.profiling.renderers import json as json_renderer
from executorch_tensorrt.profiling.session import Session

SECTIONS = (
    "Which delegate regions ran",
    "Host time of each delegate",
    "Binding, staging, enqueue and synchronisation",
    "Dominant layers",
    "Time between delegates",
    "Graph regions",
    "What each optimization profile cost",
    "Spread over runs",
    "Findings",
)
ODD = "\"'</script>\x00\x1b[31m\u2028\u2603[/bold]" + "n" * 10_000


@pytest.fixture(scope="module")
def session() -> Session:
    return encoder_session(runs=6)


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("make", [lambda: renamed(encoder_session(runs=2), ODD), tiny_session], ids=["odd", "tiny"])
def test_every_renderer_takes_every_session(renderer: Any, make: Any) -> None:
    texts = render(make(), renderer)
    assert texts or renderer == "trex"
    for name, text in texts.items():
        assert len(name) < 150
        assert text.encode()
        if name.endswith(".json"):
            json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_every_renderer_takes_a_session_without_events(renderer: Any) -> None:
    session = tiny_session()
    render(replace(session, runs=[replace(session.runs[0], events=[], profiles={})]), renderer)
    render(tiny_session(runs=[], delegates=[]), renderer)


def test_render_names_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="renderer: got 'svg', allowed 'console', 'html', 'perfetto', 'trex', 'json'"):
        render(tiny_session(), "svg")  # type: ignore[arg-type]


def test_console_answers_the_six_questions_by_name(session: Session) -> None:
    lines = console.render(session).splitlines()
    assert [line for line in lines if line in SECTIONS] == list(SECTIONS)


def test_console_shows_layers_with_their_source(session: Session) -> None:
    text = console.render(session, width=250)
    (row,) = (line for line in text.splitlines() if "GEMM #18" in line and "TensorRTBackend 2" in line)
    assert "On the clock of the host." in text
    assert row.split()[-3:] == ["linear", "encoder.layer.5.output.dense", "modeling_bert.py:339"]


def test_console_says_what_was_not_traced() -> None:
    text = console.render(tiny_session())
    assert "Not traced: needs level layers" in text
    assert "64 B copied to or from the device" in text


def test_console_shows_device_times_of_engines_on_a_device_alone(session: Session) -> None:
    lines = console.render(encoder_session(runs=3, kind="tensorrt")).splitlines()
    place = lines.index("Device time of engines' work")
    assert lines[place + 1].split() == ["delegate", "profile", "calls", "returned", "early", "median", "p90", "p99"]
    assert lines[place + 3].split()[:5] == ["TensorRTBackend", "0", "0", "2", "0"]
    assert any(line.endswith("Device times do not add up with host times.") for line in lines)
    assert "Device time" not in console.render(session)


def test_console_shows_names_without_what_a_terminal_obeys() -> None:
    text = console.render(renamed(encoder_session(runs=2), ODD))
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert "\\x1b[31m" in text
    assert text.count("n" * 60) < 30


@pytest.mark.parametrize("color", [True, False])
def test_console_uses_colours_when_asked_to(session: Session, color: bool) -> None:
    assert ("\x1b[" in console.render(session, color=color)) == color


@pytest.mark.parametrize("width", [40, 80, 200])
def test_console_keeps_the_width(session: Session, width: int) -> None:
    assert max(map(len, console.render(session, width=width).splitlines())) <= width


def test_console_compares(session: Session) -> None:
    faster = replace(session, runs=[replace(run, wall_us=run.wall_us / 2) for run in session.runs], level="phases")
    text = console.render_comparison(compare(session, faster))
    assert "Not the same: the level: layers, then phases" in text
    assert "0.50" in text
    for title in ("Runs", "Delegates", "Phases", "Layers", "Operators"):
        assert f"\n{title}\n" in text


def test_console_keeps_the_digits_of_a_small_ratio(session: Session) -> None:
    faster = replace(session, runs=[replace(run, wall_us=run.wall_us / 230) for run in session.runs])
    assert "0.0043" in console.render_comparison(compare(session, faster))


def test_json_gives_all_figures(session: Session) -> None:
    report = json.loads(json_renderer.render(session))
    assert {
        "regions",
        "phases",
        "device_times",
        "layers",
        "gaps",
        "profiles",
        "spread",
        "findings",
        "notes",
    } <= report.keys()
    assert report["device_times"] == []
    on_device = json.loads(json_renderer.render(encoder_session(runs=3, kind="tensorrt")))["device_times"]
    assert [(row["delegate"]["index"], row["profile"], row["time"]["count"]) for row in on_device] == [
        (0, 0, 2), (0, 1, 1), (2, 0, 2), (2, 1, 1)
    ]  # fmt: skip
    first = report["regions"][0]
    assert first["delegate"] == {
        "method": "forward",
        "instruction": 1,
        "index": 0,
        "name": "TensorRTBackend 0",
        "backend": "TensorRTBackend",
        "engine": "7edb9d46f400",
    }
    assert first["time"]["count"] == 6
    assert report["format"] == 1
    comparison = json.loads(json_renderer.render_comparison(compare(session, session)))
    assert comparison["differences"] == []
    assert comparison["changes"][0]["ratio"] == 1


def events_of(session: Session) -> tuple[list[dict[str, Any]], dict[tuple[int, int], str]]:
    """Slices, and names of tracks."""
    events = json.loads(perfetto.render(session))["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [event for event in events if event["ph"] == "X"], names


def test_perfetto_has_a_slice_for_every_event(session: Session) -> None:
    slices, names = events_of(session)
    assert len(slices) == sum(len(run.events) for run in session.runs)
    assert Counter(names[item["pid"], item["tid"]] for item in slices).keys() == {
        "method, host clock",
        "TensorRTBackend 0 (7edb9d46f400): host clock",
        "TensorRTBackend 0 (7edb9d46f400): layers, host clock",
        "XnnpackBackend 1: host clock",
        "TensorRTBackend 2 (7edb9d46f403): host clock",
        "TensorRTBackend 2 (7edb9d46f403): layers, host clock",
    }
    for item in slices:
        assert type(item["pid"]) is type(item["tid"]) is int
        assert item["dur"] >= 0
        assert {"run", "shapes"} <= item["args"].keys()


def test_perfetto_keeps_host_and_device_apart() -> None:
    slices, names = events_of(encoder_session(runs=2, kind="tensorrt"))
    layers = {names[item["pid"], item["tid"]] for item in slices if item["cat"] == "layer"}
    assert layers == {f"TensorRTBackend {k} (7edb9d46f40{e}): layers, device clock" for k, e in ((0, 0), (2, 3))}


def test_perfetto_lets_runs_follow_one_another(session: Session) -> None:
    slices, _ = events_of(session)
    spans = [(item["ts"], item["ts"] + item["dur"]) for item in slices if item["cat"] == "method"]
    assert all(end < begin for (_, end), (begin, _) in pairwise(spans))
    for item in slices:
        begin, end = spans[item["args"]["run"]]
        assert begin - 0.01 <= item["ts"] <= end


def test_trex_gives_a_file_for_each_engine(session: Session) -> None:
    texts = trex.render(session)
    assert list(texts) == ["forward-7edb9d46f400-0.trex.json", "forward-7edb9d46f403-2.trex.json"]
    count, *records = json.loads(texts["forward-7edb9d46f400-0.trex.json"])
    assert count == {"count": 6}
    assert {tuple(record) for record in records} == {("name", "timeMs", "averageMs", "medianMs", "percentage")}
    assert sum(record["percentage"] for record in records) == pytest.approx(100)
    assert sum(record["name"].endswith(" [profile 1]") for record in records) == len(records) / 2
    assert trex.render(encoder_session(runs=1, level="phases")) == {}


def test_trex_gives_safe_file_names() -> None:
    session = encoder_session(runs=1)
    runs = [replace(run, method="../a/" + "m" * 300) for run in session.runs]
    delegates = [replace(delegate, method="../a/" + "m" * 300) for delegate in session.delegates]
    for name in trex.render(replace(session, runs=runs, delegates=delegates)):
        assert "/" not in name
        assert len(name) < 120
