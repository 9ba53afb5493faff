"""examples/llm, run as its page says, at a small size."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_generate_matches_pytorch_and_itself(tmp_path: Path) -> None:
    sizes = ["--layers", "1", "--hidden", "64", "--prompt", "20", "--tokens", "5", "--longest", "16"]
    result = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / "llm" / "generate.py"), *sizes],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    (difference,) = re.findall(r"largest difference from PyTorch: (\S+)", result.stdout)
    assert float(difference) < 1e-4
    assert "llm.pte" in result.stdout
    assert "the engine owns 3 buffers" in result.stdout
    assert re.search(r"prefill +20 tokens +\d+ tokens/s\ndecode +4 tokens +\d+ tokens/s", result.stdout)
