"""The stub in the repository is the interface of the extension module that is built."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

from update_stubs import STUB, generate  # noqa: E402


def test_stub_is_up_to_date() -> None:
    assert STUB.read_text() == generate(), "run: .venv/bin/python tools/update_stubs.py"
