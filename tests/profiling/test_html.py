"""The page as a file: what is in it, and what cannot get out of its place in it."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from session_factory import encoder_session, renamed, tiny_session

from executorch_tensorrt.profiling.processors import timeline
from executorch_tensorrt.profiling.renderers import html
from executorch_tensorrt.profiling.session import Delegate, Event, Run, Session, Startup

QUESTIONS = (
    "Which delegate regions ran",
    "Host time of each delegate",
    "Binding, staging, enqueue and synchronisation",
    "Dominant layers",
    "Time between delegates",
    "Graph regions",
)
HOSTILE = (
    "</script><script>document.title='pwned'</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\x00\x07\u202e\ud800ü"
)


class Page(HTMLParser):
    """Elements with their attributes, text of headings, and the contents of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self._open:
            self.scripts[-1] += data
        elif "style" not in self._open:
            self.text.append(data)
            if self._open and self._open[-1] == "h2":
                self.headings.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def data_of(page: Page) -> dict:
    return json.loads(next(text for text in page.scripts if text.startswith("{")))


@pytest.mark.parametrize(
    "session",
    [encoder_session(runs=4), encoder_session(runs=4, level="delegate"), tiny_session(runs=[], delegates=[])],
    ids=["layers", "delegate", "empty"],
)
def test_page_has_a_section_for_every_question(session: Session) -> None:
    headings = Page(html.render(session)).headings
    assert [heading for heading in headings if heading in QUESTIONS] == list(QUESTIONS)


def test_page_needs_nothing_but_itself() -> None:
    page = Page(html.render(encoder_session(runs=3)))
    linked = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data", "poster", "srcset")
    ]
    assert linked
    assert all(value is not None and value.startswith("#") for value in linked)
    assert {tag for tag, _ in page.elements}.isdisjoint({"link", "img", "iframe", "object", "base", "form"})


def test_page_is_the_same_for_the_same_session() -> None:
    assert html.render(encoder_session(runs=3)) == html.render(encoder_session(runs=3))


def test_page_links_lead_to_sections() -> None:
    page = Page(html.render(encoder_session(runs=3)))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert len(ids) == len(set(ids))
    assert {f"#{name}" for name in ids} >= set(links)


def test_page_tells_device_time_from_host_time() -> None:
    page = Page(html.render(encoder_session(runs=3, kind="tensorrt_rtx")))
    assert ("span", {"class": "tag device"}) in page.elements
    assert ("span", {"class": "tag host"}) not in page.elements


def test_page_has_device_times_of_engines_on_a_device_alone() -> None:
    pages = [Page(html.render(encoder_session(runs=3, kind=kind))) for kind in ("tensorrt_rtx", "cpu")]
    tables = [[of.get("id") for tag, of in page.elements if tag == "table"] for page in pages]
    assert "device-table" in tables[0]
    assert "does not add up with the host times" in pages[0].words
    assert "device-table" not in tables[1]


def test_page_names_the_source_of_a_layer() -> None:
    words = Page(html.render(encoder_session(runs=3))).words.replace(" ", "")
    assert "encoder.layer.0.intermediate.denseaten.linear.defaultbert/modeling_bert.py:325" in words


def test_page_keeps_hostile_names_as_text() -> None:
    honest, hostile = (
        Page(html.render(s)) for s in (encoder_session(runs=3), renamed(encoder_session(runs=3), HOSTILE))
    )
    assert len(hostile.scripts) == len(honest.scripts) == 4
    assert hostile.scripts[0] == honest.scripts[0]
    assert {tag for tag, _ in hostile.elements} <= {tag for tag, _ in honest.elements} | {"p"}
    assert not [name for _, attributes in hostile.elements for name in attributes if name.startswith("on")]
    assert "<img src=x onerror=alert(1)>{{ 7*7 }}\\x00\\x07\\u202e\\ud800ü" in hostile.words
    assert any("</script>" in name for name in data_of(hostile)["names"])


def test_page_writes_control_characters_out() -> None:
    text = html.render(renamed(encoder_session(runs=3), HOSTILE))
    text.encode()
    assert not [character for character in text if character < " " and character != "\n"]
    assert "\u202e" not in text


def test_page_allows_its_own_scripts_alone() -> None:
    page = Page(html.render(tiny_session()))
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.count("'sha256-") == 3
    assert "script-src 'sha256-" in policy
    assert policy.startswith("default-src 'none'")


def test_page_shortens_names_of_10000_characters() -> None:
    text = html.render(renamed(encoder_session(runs=3), "n" * 10_000))
    assert "n" * 1000 not in text
    assert len(text) < 300_000


def test_page_of_a_session_without_runs_says_so() -> None:
    words = Page(html.render(tiny_session(runs=[], delegates=[]))).words
    assert "No calls were captured." in words


def test_page_of_a_lower_level_says_what_was_not_captured() -> None:
    words = Page(html.render(encoder_session(runs=3, level="delegate"))).words
    assert "level “delegate” does not trace phases" in words
    assert "level “delegate” does not trace layers" in words


def test_page_survives_times_that_are_no_numbers() -> None:
    run = tiny_session().runs[0]
    strange = replace(run, wall_us=float("nan"), events=[*run.events, Event("x", "phase", float("inf"), float("nan"))])
    data_of(Page(html.render(tiny_session(runs=[run, strange]))))


def test_page_names_the_method_where_there_are_several() -> None:
    session = tiny_session()
    other = replace(session.runs[0], method="decode", number=0)
    delegates = [*session.delegates, replace(session.delegates[0], method="decode")]
    words = Page(html.render(replace(session, delegates=delegates, runs=[*session.runs, other]))).words
    assert "Method Delegate" in words
    assert "decode · run 0" in words


def test_page_says_what_a_method_cost_before_its_first_run() -> None:
    words = Page(html.render(tiny_session(startup=[Startup("forward", 1500.0, [900.0])]))).words
    assert "loading took 1.50 ms , first calls 900 µs" in words


def test_page_shows_notes() -> None:
    assert (
        "12 events were dropped & lost"
        in Page(html.render(tiny_session(notes=["12 events were dropped & lost"]))).words
    )


def test_page_of_a_large_session_states_the_thinning() -> None:
    run = tiny_session().runs[0]
    many = [Event(f"layer {k}", "layer", 20 + k / 1000, 0.001, instruction=0) for k in range(5000)]
    session = tiny_session(
        level="layers", runs=[replace(run, number=k, events=[*run.events, *many]) for k in range(60)]
    )
    page = Page(html.render(session))
    shown = data_of(page)["runs"]
    assert "This page was thinned" in page.words
    assert f"{len(shown)} calls of 60 can be chosen" in page.words
    assert sum(len(run["spans"]) for run in shown) <= timeline.MAX_SPANS
    assert max(len(run["spans"]) for run in shown) <= timeline.MAX_SPANS_PER_RUN
    assert f"The first {html.MAX_ROWS} of 5000 layers are on this page" in page.words


def test_page_of_a_small_session_is_not_thinned() -> None:
    assert "thinned" not in Page(html.render(encoder_session(runs=3))).words


def test_page_of_many_delegates_is_cut_and_says_so() -> None:
    delegates = [Delegate("forward", k, k, "XnnpackBackend", f"XnnpackBackend {k}") for k in range(400)]
    calls = [Event("DELEGATE_CALL", "call", 2.0 * k, 1.0, instruction=k) for k in range(400)]
    run = Run("forward", 0, 900.0, [], [], {}, [Event("Method::execute", "method", 0, 800.0), *calls])
    words = Page(html.render(tiny_session(delegates=delegates, runs=[run]))).words
    assert f"The first {html.MAX_ROWS} of 400 delegates are on this page" in words
