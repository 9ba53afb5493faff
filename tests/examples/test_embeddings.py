"""examples/1_embeddings: the vectors are PyTorch's, and the service finds the right documents without torch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import RunAlone, RunExample

NO_TORCH = "sys.modules['torch'] = None"


def test_service_finds_documents_on_both_profiles(run_example: RunExample, run_alone: RunAlone) -> None:
    told = run_example("1_embeddings/export.py", "--layers", "1")
    (difference,) = re.findall(r"largest difference from PyTorch: (\S+)", told)
    assert float(difference) < 1e-5

    result = run_alone("1_embeddings/serve.py", "--requests", "30", setup=NO_TORCH)
    assert result.returncode == 0, result.stderr
    answers = re.findall(r"^(.*\?) +0\.\d\d  (\w+ \w+)", result.stdout, re.MULTILINE)
    assert answers == [
        ("how do I bake bread without buying yeast?", "Sourdough is"),
        ("why is the sea higher at some hours of the day?", "The tides"),
        ("what do bees do when it is cold?", "In winter"),
        ("how does a fridge work?", "A refrigerator"),
    ]
    rows = re.findall(r"^ +(\d) +(\d+) +(\d+) +[\d.]+ +[\d.]+ +\d+$", result.stdout, re.MULTILINE)
    assert [int(profile) for profile, _, _ in rows] == [0, 1]
    assert sum(int(texts) for _, _, texts in rows) == 30

    refused = run_alone("1_embeddings/serve.py", "--batch", "9", setup=NO_TORCH)
    assert refused.stderr.endswith("--batch: got 9, allowed 1..8; export.py has the profiles.\n")


def test_service_says_what_makes_its_model(run_alone: RunAlone) -> None:
    result = run_alone("1_embeddings/serve.py", "elsewhere", setup=NO_TORCH)
    assert result.returncode == 1
    assert result.stderr == (
        "the service has no model: got no file 'elsewhere/encoder.pte'; run python export.py first.\n"
    )
