"""Diagrams of the pages are ones that mermaid can draw: on the page a mistake is a picture of a bomb."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import blocks

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "CONTRIBUTING.md", *sorted(REPOSITORY.glob("docs/**/*.md"))]
DIAGRAMS = [(page.name, text) for page in PAGES for text in blocks(page, "mermaid")]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MERMAID = Path(sys.prefix) / "share" / "mermaid" / "mermaid.min.js"

PARSE = """
for (const source of document.querySelectorAll("pre")) {
  try { await mermaid.parse(source.textContent); } catch (error) { source.textContent = "WRONG: " + error.message; }
}
document.title = "parsed";
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.skipif(not MERMAID.is_file(), reason="no mermaid: make docs")
def test_diagrams_are_mermaid(tmp_path: Path) -> None:
    assert DIAGRAMS
    sources = "".join(f"<pre>{html.escape(text)}</pre>" for _, text in DIAGRAMS)
    page = tmp_path / "page.html"
    scripts = f"<script src='{MERMAID.as_uri()}'></script><script>(async () => {{{PARSE}}})()</script>"
    page.write_text(f"<!doctype html><meta charset=utf-8>{sources}{scripts}")
    flags = "--headless --no-sandbox --disable-gpu --virtual-time-budget=10000 --dump-dom"
    command = [str(CHROMIUM), *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    document = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "<title>parsed</title>" in document
    found = re.findall(r"<pre>(.*?)</pre>", document, re.DOTALL)
    assert len(found) == len(DIAGRAMS)
    wrong = [
        f"{name}: {html.unescape(text)}"
        for (name, _), text in zip(DIAGRAMS, found, strict=True)
        if text.startswith("WRONG")
    ]
    assert not wrong, "\n".join(wrong)
