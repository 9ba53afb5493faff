"""Every message that the page of errors quotes is one that the code has."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "reference" / "errors.md"
CPP_TEXT = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')


@cache
def texts() -> str:
    """All text literals, those that the compiler joins in one line."""
    found: list[str] = []
    for source in (REPOSITORY / "src").rglob("*.py"):
        nodes = ast.walk(ast.parse(source.read_text()))
        found += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for source in (REPOSITORY / "native").rglob("*.[ch]*"):
        literals = CPP_TEXT.findall(source.read_text())
        found += [re.sub(r'"\s*"', "", literal).strip().strip('"').replace('\\"', '"') for literal in literals]
    return "\n".join(found)


def quoted() -> list[str]:
    """What is between backticks in the columns of messages, without the parts that vary."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "---" not in line]
    cells = [cell for row in rows for cell in re.findall(r"`([^`]*)`", row) if " " in cell]
    parts = [part.strip(" ':,") for cell in cells for part in cell.split("…")]
    return [part for part in parts if len(part) > 5]


@pytest.mark.parametrize("text", sorted(set(quoted())))
def test_quoted_message_exists(text: str) -> None:
    assert text in texts()
