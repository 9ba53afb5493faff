"""Runs scripts of examples/ as their pages say, in an empty folder."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import commands

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

RunExample = Callable[..., str]
RunAlone = Callable[..., "subprocess.CompletedProcess[str]"]
RunPage = Callable[[str, Path], str]


@pytest.fixture
def run_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunExample:
    """What `python FOLDER/SCRIPT ARGUMENTS` prints; in this process, which has imported torch already."""
    monkeypatch.chdir(tmp_path)

    def run(script: str, *arguments: str) -> str:
        path = EXAMPLES / script
        beside = {file.stem for file in path.parent.glob("*.py")} - sys.modules.keys()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [str(path), *arguments])
            patch.syspath_prepend(path.parent)
            try:
                runpy.run_path(str(path), run_name="__main__")
            finally:
                for module in beside:
                    sys.modules.pop(module, None)
        return capsys.readouterr().out

    return run


@pytest.fixture
def run_page() -> RunPage:
    """What the `etrt` commands of an example's page print, one after the other in a folder."""

    def run(example: str, folder: Path) -> str:
        told = ""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        for command in commands(EXAMPLES / example / "README.md"):
            if command.startswith("etrt "):
                result = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=120,
                    check=False,
                    env=environment,
                )
                assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
                told += result.stdout
        return told

    return run


@pytest.fixture
def run_alone(tmp_path: Path) -> RunAlone:
    """The same in a process of its own, after `setup`."""

    def run(script: str, *arguments: str, setup: str = "") -> subprocess.CompletedProcess[str]:
        path = str(EXAMPLES / script)
        code = f"import runpy, sys\nsys.argv[0] = {path!r}\n{setup}\nrunpy.run_path({path!r}, run_name='__main__')"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(path).parent), "PYTHONWARNINGS": "ignore"},
        )

    return run
