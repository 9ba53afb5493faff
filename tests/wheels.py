"""Wheels of this checkout, unpacked at a path that no build has seen, and Python there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]


def build_wheel(folder: Path, *defines: str) -> Path:
    """Builds a wheel with CMake definitions such as "ETRT_EVENT_TRACING=OFF"."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    settings = [f"build-dir={folder / 'build'}", *(f"cmake.define.{define}" for define in defines)]
    options = [f"--config-settings={setting}" for setting in settings]
    subprocess.run(
        [*command, *options, "-w", str(folder), str(REPOSITORY)], check=True, timeout=600, capture_output=True
    )
    (path,) = folder.glob("*.whl")
    return path


def unpack_beside_executorch(wheel: Path, folder: Path) -> Path:
    """As in a site-packages folder."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    spec = find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    (folder / "executorch").symlink_to(next(iter(spec.submodule_search_locations)))
    return folder


def run_there(site: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Python with the unpacked wheel first on its path; -S leaves out the finders of editable installs."""
    packages = str(Path(np.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{site}:{packages}", "PYTHONDONTWRITEBYTECODE": "1"},
    )
