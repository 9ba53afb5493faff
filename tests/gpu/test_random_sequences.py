"""Random sequences of calls: what comes out is what NumPy says, bit for bit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sequences.trying import try_seeds

COUNT = 500


def test_random_sequences_are_right() -> None:
    folder = Path(os.environ["ETRT_GPU_CASES"])
    if not (folder / "sequences_device.pte").is_file():
        pytest.skip(f"no sequences_device.pte in '{folder}': see tests/gpu/README.md")
    try_seeds("gpu", COUNT, str(folder), module="gpu.random_sequences")
