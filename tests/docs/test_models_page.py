"""The page of supported models says what was measured."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

from update_models_page import PAGE, generate  # noqa: E402


def test_models_page_agrees_with_what_was_measured() -> None:
    assert PAGE.read_text() == generate(), "run: .venv/bin/python tools/update_models_page.py"
