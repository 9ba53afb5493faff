"""Random sequences of calls on device arrays and host arrays, over the fake CUDA; see tests/sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
from sequences.programs import write_programs
from sequences.trying import try_seeds

COUNT = 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("onnx", "onnxscript", "tensorrt_rtx"):
        pytest.importorskip(name, reason="B3, B2 and B1 of the review of 2026-11-30: seeds 197, 348, 545")
    folder = tmp_path_factory.mktemp("sequences")
    write_programs(folder, "tensorrt_rtx", "device", "host_io", "host")
    return folder


def test_random_sequences_over_a_device_are_right(folder: Path, fake_cudart: Path) -> None:
    try_seeds("device", COUNT, str(fake_cudart), str(folder))
