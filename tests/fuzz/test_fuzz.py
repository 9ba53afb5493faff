"""Fuzzes what reads untrusted bytes for some seconds each, from a kept corpus."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TARGETS = sorted(source.stem for source in HERE.glob("fuzz_*.cpp"))
SECONDS = 10


@pytest.mark.parametrize("target", TARGETS)
def test_fuzzer_finds_nothing(target: str, build_dir: Path, tmp_path: Path) -> None:
    program = build_dir / "tests" / "fuzz" / target
    if not program.is_file():
        pytest.skip("fuzzers are built by `make sanitize`, with Clang")
    found = tmp_path / "found"
    found.mkdir()
    options = [f"-max_total_time={SECONDS}", "-seed=1", "-max_len=4096", f"-artifact_prefix={tmp_path}/"]
    corpus = HERE / "corpus" / target.removeprefix("fuzz_")
    result = subprocess.run(
        [program, *options, found, corpus], capture_output=True, text=True, timeout=SECONDS + 50, check=False
    )
    findings = [f"{path.name}: {path.read_bytes()!r}" for path in tmp_path.iterdir() if path.is_file()]
    assert result.returncode == 0, "\n".join([result.stderr[-5000:], *findings])
