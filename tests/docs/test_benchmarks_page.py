"""The page of benchmarks says what was measured."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

from update_benchmarks_page import PAGE, generate  # noqa: E402


def test_benchmarks_page_agrees_with_what_was_measured() -> None:
    assert PAGE.read_text() == generate(), "run: .venv/bin/python tools/update_benchmarks_page.py"
