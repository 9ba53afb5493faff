"""Random sequences of calls on the CPU engine, with threads; see tests/sequences."""

from __future__ import annotations

from pathlib import Path

from sequences.programs import write_programs
from sequences.trying import try_seeds

COUNT = 600


def test_random_sequences_on_the_cpu_are_right(tmp_path: Path) -> None:
    write_programs(tmp_path, "cpu", "cpu")
    try_seeds("cpu", COUNT, str(tmp_path))
