"""Advice as text, JSON, page and code."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest
from profiling.advice_factory import declared, hostile, sequences, two_profiles
from profiling.session_factory import called_session

from executorch_tensorrt import Input
from executorch_tensorrt.cli.declarations import parse_declarations
from executorch_tensorrt.profiling.processors import Advice, advise
from executorch_tensorrt.profiling.renderers import json as json_renderer
from executorch_tensorrt.profiling.renderers.advice import console as advice_console
from executorch_tensorrt.profiling.renderers.advice import page as advice_page
from executorch_tensorrt.profiling.renderers.advice.code import command_line, python_code
from executorch_tensorrt.program.declaration import Dim, MethodInput

ODD = "\"'</script>\\\x00\x1b[31m\u2028\ud800\n{{ x }}" + "n" * 500


@pytest.fixture(scope="module")
def two_dims() -> Advice:
    draw = random.Random(2)
    sizes = [(draw.choice((1, 2, 8)), draw.choice((1, 1, 30, 35, 300))) for _ in range(60)]
    calls = [((batch, sequence), 50.0 + batch * sequence, 0) for batch, sequence in sizes]
    return advise([called_session(calls, [((1, 4, 8), (1, 64, 512))])])


def inputs_of(code: str) -> list[Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names["inputs"]


def told(item: Input) -> Any:
    return item.profiles, item.dtype, item.shared_dims


def test_code_declares_the_proposed_ranges(two_dims: Advice) -> None:
    ids, mask = inputs_of(python_code(two_dims))
    assert told(ids) == told(mask)
    assert (ids.name, mask.name, ids.dtype) == ("ids", "mask", "int64")
    assert ids.shared_dims == {0: "ids_0", 1: "ids_1"}
    assert [tuple(zip(*profile, strict=True)) for profile in ids.profiles] == [
        item.ranges for item in two_dims.profiles
    ]


@pytest.mark.parametrize("sessions", [two_profiles(0.1), [sequences([1, 40, 300])]], ids=["two", "one"])
def test_code_and_command_line_declare_the_same(sessions: Any, two_dims: Advice) -> None:
    for advice in (advise(sessions), two_dims):
        parsed = parse_declarations(command_line(advice))
        assert [told(item) for item in parsed] == [told(item) for item in inputs_of(python_code(advice))]


def test_code_keeps_static_inputs_formulas_and_what_is_no_tensor() -> None:
    inputs = [
        MethodInput("w", "float16", [Dim("", 1, 3), Dim("", 1, 4)], [3, 4]),
        MethodInput("", "int", [], []),
        MethodInput("x", "int64", [Dim("s", 1, 0)], [8]),
        MethodInput("y", "bool", [Dim("s", 2, 1), Dim("s", -1, 65)], [17, 64]),
        MethodInput("scale", "float32", [], []),
    ]
    session = sequences([2, 8])
    runs = [replace(run, shapes=[[3, 4], [], [n], [2 * n + 1, 65 - n], []]) for run in session.runs for n in (2, 8)]
    advice = advise([declared(replace(session, runs=runs), inputs, [{"s": (1, 4, 8)}])])
    w, number, x, y, scale = inputs_of(python_code(advice))
    assert (told(w)[0][0], w.dtype, number) == (((3, 4),) * 3, "float16", None)
    assert told(scale)[0] == (((), (), ()),)
    assert [profile.max for profile in x.profiles] == [(2,), (8,)]
    assert [(profile.min, profile.opt, profile.max) for profile in y.profiles] == [
        ((5, 63), (5, 63), (5, 63)),
        ((3, 57), (17, 57), (17, 64)),
    ]
    assert x.shared_dims == y.shared_dims == {}
    assert command_line(advice) == []


def test_code_holds_odd_names_as_text() -> None:
    code = python_code(hostile(ODD))
    assert code.isascii()
    assert [item.name for item in inputs_of(code)] == [ODD, ODD]
    assert all(label.isidentifier() for label in inputs_of(code)[0].shared_dims.values())


def test_console_shows_the_proposal(two_dims: Advice) -> None:
    text = advice_console.render(two_dims)
    titles = ("Recorded sizes", "Proposed optimization profiles", "How many", "Expected gain", "Code")
    assert [line for line in text.splitlines() if line in titles] == list(titles)
    assert "ids[1] and 1 other dim" in text
    assert "The gain is not estimated: the program has one optimization profile" in " ".join(text.split())
    assert python_code(two_dims) in text
    assert f"etrt export MODEL --input '{command_line(two_dims)[0]}'" in text


def test_console_shows_the_gain() -> None:
    text = advice_console.render(advise(two_profiles(0.15)))
    assert re.search(r"[\d.]+ % less time for these calls, from \d+ µs to \d+ µs a call\.", text)
    assert "expected mean" in text
    slower = advice_console.render(advise(two_profiles(0.15), max_profiles=1))
    assert "% more time for these calls" in slower


def test_console_shows_names_without_what_a_terminal_obeys() -> None:
    text = advice_console.render(hostile(ODD))
    assert all(char.isprintable() for char in text.replace("\n", ""))


@pytest.mark.parametrize(("color", "width"), [(True, 80), (False, 60)])
def test_console_takes_width_and_colour(two_dims: Advice, color: bool, width: int) -> None:
    text = advice_console.render(two_dims, width=width, color=color)
    assert ("\x1b[" in text) == color
    before_code = text[: text.index("# Optimization profiles")]
    assert color or max(map(len, before_code.splitlines())) <= width


def test_json_gives_all_figures() -> None:
    advice = advise(two_profiles(0.15))
    report = json.loads(json_renderer.render_advice(advice), parse_constant=pytest.fail)
    assert report["format"] == 1
    assert (report["method"], report["calls"]) == ("forward", 50)
    assert report["variables"] == [
        {"name": "ids[1]", "dims": [[0, 1], [1, 1]], "today": [[1, 16, 64], [1, 256, 512]], "recorded": [4, 300]}
    ]
    assert [item["ranges"] for item in report["profiles"]] == [
        [list(box[0])] for box in (p.ranges for p in advice.profiles)
    ]
    assert report["gain"] == pytest.approx(advice.gain, abs=1e-6)
    assert report["chosen"] in report["choices"]
    assert report["code"] == python_code(advice)
    assert json.loads(json_renderer.render_advice(hostile(ODD)))["program"] == ODD


def numbers(text: str, element: str, attribute: str) -> list[float]:
    return [float(value) for value in re.findall(rf'<{element} [^>]*\b{attribute}="([-\d.]+)"', text)]


def test_page_draws_a_figure_for_each_size(two_dims: Advice) -> None:
    text = advice_page.render(two_dims)
    assert text.count("<svg ") == 2
    assert text.count("<circle ") == 2 * 60
    ranges = len(two_dims.profiles) + 1
    assert text.count('<line class="opt"') == 2 * ranges
    assert "today 0" in text
    for element, across, down in (("rect", "x", "y"), ("circle", "cx", "cy"), ("text", "x", "y")):
        assert all(0 <= value <= 1000 for value in numbers(text, element, across))
        assert all(0 <= value <= 700 for value in numbers(text, element, down))
    assert all(value > 0 for name in ("width", "height") for value in numbers(text, "rect", name))


def test_page_counts_every_call_once(two_dims: Advice) -> None:
    titles = re.findall(r"<title>(\d+) calls? with", advice_page.render(two_dims))
    assert sum(map(int, titles)) == 2 * 60


def test_page_holds_the_code(two_dims: Advice) -> None:
    text = advice_page.render(two_dims)
    shown = re.search(r'<pre class="panel code"><code>(.*?)</code></pre>', text, re.DOTALL)
    assert shown is not None
    assert shown[1].replace("&#34;", '"').replace("&#39;", "'") == python_code(two_dims).rstrip("\n")


@pytest.mark.parametrize(
    "make", [lambda: hostile(ODD), lambda: advise([sequences([7])]), lambda: advise(two_profiles(0.2))]
)
def test_page_takes_every_advice(make: Any) -> None:
    text = advice_page.render(make())
    assert text.encode()
    assert "<script>{{" not in text
    assert "\x1b" not in text


def test_page_takes_many_calls_and_no_times() -> None:
    session = sequences([2, 300, 2, 300] * 500, each=1)
    page = advice_page.render(advise([session]))
    assert page.count("<circle ") == 1000
    assert len(set(re.findall(r'<circle [^>]*cx="([^"]*)"', page))) == 2
    untimed = replace(session, runs=[replace(run, wall_us=0.0) for run in session.runs])
    assert "The recording has no times." in advice_page.render(advise([untimed]))
