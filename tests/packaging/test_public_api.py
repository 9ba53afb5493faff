"""public_api.txt is what users can name: no change of it goes unseen."""

import sys
from difflib import unified_diff
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

from update_public_api import RECORD, generate  # noqa: E402


def test_public_api_is_as_recorded() -> None:
    before, now = RECORD.read_text().splitlines(), generate().splitlines()
    changed = "\n".join(unified_diff(before, now, "recorded", "now", lineterm="", n=2))
    assert not changed, f"if this is wanted, run .venv/bin/python tools/update_public_api.py\n{changed}"
