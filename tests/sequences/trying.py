"""Random sequences as a test: the seeds of every run, and one that nobody has seen."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def try_seeds(kind: str, count: int, *options: str, module: str = "sequences") -> None:
    """Run sequences in a process of their own. FROM and COUNT of the environment choose other seeds.

    Raises:
        AssertionError: one failed; its shortest part that does is the text.
    """
    first = int(os.environ.get("FROM", 1))
    count = int(os.environ.get("COUNT", count))
    fresh = secrets.randbelow(1 << 40)
    print(f"fresh seed: {fresh}", file=sys.stderr)
    for at, number in ((first, count), (fresh, 1)):
        done = subprocess.run(
            [sys.executable, "-m", module, kind, str(at), str(number), *options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
        print(done.stdout, file=sys.stderr)
