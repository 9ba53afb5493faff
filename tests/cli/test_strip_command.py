"""`etrt strip`; what it takes out is in tests/test_stripping.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Etrt


def test_strip_writes_a_copy_and_says_what_it_is(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    result = etrt("strip", rows, "-o", tmp_path / "shared.pte")
    assert result.stdout == f"{tmp_path}/shared.pte: the program of '{rows}' without source lines, paths and machine\n"
    etrt("inspect", tmp_path / "shared.pte", "--check")


def test_strip_tells_a_mistake_in_one_line(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    assert "the output is the file itself" in etrt("strip", rows, "-o", rows, code=2).stderr
    assert "nothing to strip at" in etrt("strip", tmp_path / "x", "-o", tmp_path / "y", code=2).stderr
    assert "is a folder; give a file" in etrt("strip", rows, "-o", tmp_path, code=2).stderr
