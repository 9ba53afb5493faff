"""`etrt demo`: what it prints. What it does is tested in tests/demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executorch_tensorrt import demo
from executorch_tensorrt.cli import demo as command

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Etrt

SUMMARY: dict[str, Any] = {
    "max_abs_error": 1.5e-07,
    "profiles_used": [0, 1],
    "queries": [{"query": "what is red?", "best": "Tomatoes", "score": 0.75, "profile": 0}],
    "passages": [{"title": "Tomatoes", "profile": 1}],
    "export_seconds": 12.5,
    "export_reused": False,
    "phases_us": {"enqueue_host": 5000.0},
    "phases_us_by_profile": {"0": {"enqueue_host": 3000.0}, "1": {"enqueue_host": 7000.0}},
    "sizes": {"minilm.pte": 90_000_000},
}


def test_demo_prints_answers_phases_and_the_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etrt: Etrt
) -> None:
    folders: list[Path] = []

    def run_demo(folder: Path, step: Callable[[str], None]) -> dict[str, Any]:
        folders.append(folder)
        step("thinking")
        return SUMMARY

    monkeypatch.setattr(demo, "run_demo", run_demo)
    result = etrt("demo", "--output", tmp_path / "out")
    assert folders == [tmp_path / "out"]
    assert "thinking" in result.stderr
    for text in (
        "what is red?",
        "Tomatoes",
        "0.750",
        "3 ms",
        "7 ms",
        "1.5e-07, over 2 texts",
        "90.0 MB",
        "12.5 s",
        "report.html",
    ):
        assert text in result.stdout


def test_demo_names_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch, etrt: Etrt) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "transformers" else object())
    told = etrt("demo", code=2).stderr
    assert told == "etrt: the demo lacks transformers: run pip install 'executorch-tensorrt[demo]'.\n"


def test_demo_names_an_output_that_is_a_file(tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "file").touch()
    assert "is a file" in etrt("demo", "--output", tmp_path / "file", code=2).stderr
