"""Wheels of this checkout, installed at a path that no build has seen, and Python and shells there."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]


def build_sdist(folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    (path,) = folder.glob("*.tar.gz")
    return path


def build_wheel(folder: Path, *defines: str, source: Path = REPOSITORY) -> Path:
    """Builds a wheel with CMake definitions such as "ETRT_EVENT_TRACING=OFF"."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    settings = [f"build-dir={folder / 'build'}", *(f"cmake.define.{define}" for define in defines)]
    options = [f"--config-settings={setting}" for setting in settings]
    subprocess.run([*command, *options, "-w", str(folder), str(source)], check=True, timeout=600, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def install_beside_executorch(wheel: Path, folder: Path) -> Path:
    """As in a site-packages folder."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, "--target", str(folder), str(wheel)], check=True, timeout=120, capture_output=True)
    spec = find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    (folder / "executorch").symlink_to(next(iter(spec.submodule_search_locations)))
    return folder


def make_environment(folder: Path, wheel: Path, packages: Iterable[str]) -> Path:
    """A virtual environment with the wheel, and links to these packages of this environment; its folder of programs."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*command, "--no-compile", str(wheel)], check=True, timeout=120, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in packages:
        files = distribution(name).files
        assert files is not None
        for entry in {file.parts[0] for file in files} - {".."}:
            (site / entry).symlink_to(distribution(name).locate_file(entry))
    return python.parent


def run_in(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of such an environment, which knows nothing of this one."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=program.parent,
        env=environment,
    )


def environment_there(site: Path) -> dict[str, str]:
    """With the installed wheel first on Python's path."""
    packages = str(Path(np.__file__).parents[1])
    return {
        **os.environ,
        "PYTHONPATH": f"{site}:{packages}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
    }


def run_there(site: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Python with the installed wheel; -S leaves out the finders of editable installs."""
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=REPOSITORY,
        env=environment_there(site),
    )


def shell_there(site: Path, script: str, folder: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """A shell in `folder` that has the installed wheel's commands, Python and the build tools of this environment."""
    commands = folder / ".commands"
    commands.mkdir(exist_ok=True)
    programs = {"python": "", **{name: str(site / "bin" / name) for name in ("etrt", "etrt_runner")}}
    for name, program in programs.items():
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -S {program} "$@"\n')
        (commands / name).chmod(0o755)
    path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=folder,
        env={**environment_there(site), "PATH": path},
    )
