"""The native runner in a process of its own, and .npy files for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from executorch_tensorrt.native_files import native_folder

RUNNER = native_folder() / "bin" / "etrt_runner"


class Runner(Protocol):
    def __call__(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Runs in an empty folder and checks the exit code. A failure must be told in one line."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [RUNNER, *map(os.fspath, map(str, arguments))],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )
        assert result.returncode == code, f"{result.stdout}\n{result.stderr}"
        told = result.stderr.splitlines()
        assert len(told) == (0 if code == 0 else 1), result.stderr
        assert all(line.startswith("etrt_runner: ") for line in told)
        return result

    return run


@pytest.fixture
def report(runner: Runner) -> Callable[..., dict[str, Any]]:
    """What the runner tells as JSON."""

    def run(*arguments: object) -> dict[str, Any]:
        return json.loads(runner(*arguments, "--json").stdout)

    return run


@pytest.fixture
def npy(tmp_path: Path) -> Callable[[object], Path]:
    """Saves an array, or bytes as they are, into a new .npy file."""
    count = 0

    def save(array: object) -> Path:
        nonlocal count
        count += 1
        path = tmp_path / f"array_{count}.npy"
        if isinstance(array, bytes):
            path.write_bytes(array)
        else:
            np.save(path, np.asarray(array))
        return path

    return save
