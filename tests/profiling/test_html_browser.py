"""The page in headless Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from profiling.advice_factory import hostile
from session_factory import encoder_session, renamed, tiny_session

from executorch_tensorrt.profiling.renderers import html
from executorch_tensorrt.profiling.renderers.advice import page as advice_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

ATTACK = "document.title='pwned'"
HOSTILE = f'</script><script>{ATTACK}</script>"\'><img src=x onerror="{ATTACK}">\x07\u202e\ud800é'

PAYLOADS = {
    "element": f"<img src=x onerror={ATTACK}>",
    "end of a script": f"</script><script>{ATTACK}</script>",
    "end of a style": f"</style><script>{ATTACK}</script>",
    "double quote": f'" onmouseover="{ATTACK}" x="',
    "single quote": f"' onfocus='{ATTACK}' autofocus x='",
    "comment": f"<!--<script>{ATTACK}//-->",
    "begin of a comment in a script": "<!--<script>",
    "drawing": f"<svg onload={ATTACK}><foreignObject><iframe srcdoc=x></iframe></svg>",
    "frame and base": f"<iframe src=javascript:{ATTACK}></iframe><base href=//evil.example/><form action=x><input>",
    "end of a cell and of the page": f"</td></tr></table></body></html><script>{ATTACK}</script>",
    "bidi": f"\u202e\u2066<b onclick={ATTACK}>\u2069",
    "NUL and other controls": f"\x00\x1b\x9b\u2028<s\x00cript>{ATTACK}</s\x00cript>",
    "half of a surrogate pair": f"\ud800<img src=x onerror={ATTACK}>\udfff",
    "template": f"{{{{ cycler.__init__.__globals__ }}}}{{% raw %}}${{{ATTACK}}}`\\",
}

Open = Callable[..., str]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens a page from disk, runs a script in it, and gives the document back. The console must stay empty."""

    def open_page(text: str, script: str = "") -> str:
        if script:
            text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
            # What changes is drawn with the next frame, which may come after the dump; or before printing.
            script += "window.dispatchEvent(new Event('beforeprint'));"
            text = text.replace("</body>", f"<script>{script}</script></body>")
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=2000 --dump-dom"
        done = subprocess.run(
            [
                str(CHROMIUM),
                *flags.split(),
                f"--user-data-dir={tmp_path / 'profile'}",
                "--window-size=1280,2000",
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not console, console
        return done.stdout

    return open_page


def bars(document: str) -> list[str]:
    chart = document[document.index('class="tl-chart"') : document.index('class="tl-detail"')]
    return re.findall(r'<rect [^>]*class="bar ([^"]*)"', chart)


def test_page_draws_the_timeline(opened: Open) -> None:
    drawn = bars(opened(html.render(encoder_session(runs=6))))
    assert {"method", "call", "foreign", "operator", "enqueue-host", "layer-0"} <= set(drawn)
    assert len(drawn) > 60


def test_page_of_no_runs_opens(opened: Open) -> None:
    assert "No calls were captured." in opened(html.render(tiny_session(runs=[], delegates=[])))


def test_page_does_not_run_hostile_names(opened: Open) -> None:
    document = opened(html.render(renamed(encoder_session(runs=3), HOSTILE)))
    assert "<title>pwned</title>" not in document
    assert "<img" not in document
    assert len(bars(document)) > 60


class _Document(HTMLParser):
    """The names of elements in what the browser made of a page, and of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes.update(name for name, _ in attrs)


def assert_text(document: str, honest: str) -> None:
    """Whether a page has nothing that one with honest names has not."""
    assert "<title>pwned</title>" not in document
    found, wanted = _Document(document), _Document(honest)
    # Some texts may break, or get a paragraph that says that they were shortened.
    assert found.elements.keys() - {"wbr", "p"} <= wanted.elements.keys()
    assert found.elements["script"] == wanted.elements["script"]
    assert found.attributes <= wanted.attributes
    assert not [name for name in found.attributes if name.startswith("on")]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_page_shows_every_payload_as_text_under_its_own_policy(payload: str, opened: Open) -> None:
    session = encoder_session(runs=2)
    document = opened(html.render(renamed(session, PAYLOADS[payload])))
    assert '<meta http-equiv="Content-Security-Policy"' in document
    assert_text(document, opened(html.render(renamed(session, "name"))))
    assert len(bars(document)) > 40


def test_advice_page_shows_all_payloads_as_text_under_its_own_policy(opened: Open) -> None:
    honest = opened(advice_page.render(hostile("name")))
    for payload in PAYLOADS.values():
        document = opened(advice_page.render(hostile(payload)))
        assert '<meta http-equiv="Content-Security-Policy"' in document
        assert_text(document, honest)


def test_advice_page_does_not_run_hostile_names(opened: Open) -> None:
    document = opened(advice_page.render(hostile(HOSTILE)), "document.getElementById('theme').click();")
    assert "<title>pwned</title>" not in document
    assert "<img" not in document
    assert document.count("<circle ") == 15
    assert 'data-theme="dark"' in document


def test_page_folds_long_tables(opened: Open) -> None:
    document = opened(html.render(encoder_session(runs=6)))
    assert "Show all 144 rows" in document


def keys(*pressed: str) -> str:
    presses = "".join(
        f"chart.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}));" for key in pressed
    )
    return f"const chart = document.querySelector('.tl-chart'); {presses}"


def test_timeline_zooms_and_moves_by_keyboard(opened: Open) -> None:
    page = html.render(encoder_session(runs=6))
    assert len(bars(opened(page, keys("+", "+", "+", "+", "d")))) < len(bars(opened(page)))


def test_timeline_describes_the_bar_that_keys_select(opened: Open) -> None:
    document = opened(html.render(tiny_session()), keys("ArrowDown", "ArrowDown"))
    detail = document[document.index('class="tl-detail"') :]
    assert "<h3>TensorRTBackend 0</h3>" in detail
    assert "<dt>staged_bytes</dt><dd>64</dd>" in detail
    assert 'class="selected"' in document


def test_timeline_finds_layers_by_module(opened: Open) -> None:
    script = """const search = document.querySelector('#timeline input[type=search]');
        search.value = 'layer.1.intermediate.dense'; search.dispatchEvent(new Event('input'));"""
    document = opened(html.render(encoder_session(runs=6)), script)
    assert re.search(r"1 bar, [\d.]+ .s together", document)
    assert sum("dim" in style for style in bars(document)) == len(bars(document)) - 1


def test_timeline_shows_the_call_that_is_chosen(opened: Open) -> None:
    first = tiny_session().runs[0]
    session = tiny_session(runs=[first, replace(first, number=1, wall_us=120.0)])
    assert "Run 1 of forward" in opened(html.render(session), "document.querySelector('[data-action=next]').click();")


def test_table_sorts_by_number(opened: Open) -> None:
    script = """const table = document.getElementById('host-table');
        table.tHead.rows[0].cells[1].querySelector('button').click();
        document.title = [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join('|');"""
    title = re.search("<title>(.*)</title>", opened(html.render(encoder_session(runs=6)), script))
    assert title is not None
    assert title[1].endswith("XnnpackBackend 1")


def test_table_filters_layers(opened: Open) -> None:
    script = """const filter = document.querySelector('input[data-filter=layers-table]');
        filter.value = 'layer.5.output.dense'; filter.dispatchEvent(new Event('input'));
        const rows = [...document.getElementById('layers-table').tBodies[0].rows];
        document.title = rows.filter((row) => !row.hidden).length;"""
    assert "<title>2</title>" in opened(html.render(encoder_session(runs=6)), script)


def test_theme_changes_and_is_remembered(opened: Open) -> None:
    script = "document.getElementById('theme').click(); document.title = localStorage.getItem('etrt-theme');"
    document = opened(html.render(tiny_session()), script)
    assert 'data-theme="dark"' in document
    assert "<title>dark</title>" in document
