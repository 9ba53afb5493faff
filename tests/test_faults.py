"""The list of faults that tools/put_faults_back.py puts into the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tools"))

from faults import FAULTS, Fault  # noqa: E402


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_has_a_place_in_the_code(fault: Fault) -> None:
    for change in fault.changes:
        text = (REPOSITORY / "native" / change.file).read_text()
        assert text.count(change.text) == 1, f"{change.file}: {change.text}"
        assert change.text != change.instead


def test_faults_have_names_of_their_own() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names))
