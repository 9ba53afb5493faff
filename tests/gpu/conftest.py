"""These tests run programs on an NVIDIA GPU; elsewhere they skip, and say what is missing. See README.md beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu import cuda
from gpu.prepared import Case, load_case

HERE = Path(__file__).parent
README = "see tests/gpu/README.md"


@cache
def missing() -> str | None:
    """What these tests lack here."""
    try:
        count = cuda.device_count()
    except (OSError, RuntimeError) as error:
        return f"no NVIDIA GPU: {error}"
    if count == 0:
        return "no NVIDIA GPU"
    if find_spec("tensorrt") is None:
        return f"no Python module 'tensorrt': {README}"
    folder = os.environ.get("ETRT_GPU_CASES")
    if folder is None:
        return f"ETRT_GPU_CASES names no folder of prepared programs: {README}"
    return None if any(Path(folder).glob("*.pte")) else f"no prepared programs in '{folder}': {README}"


class SkippedModule(pytest.Module):
    def collect(self) -> list[pytest.Item]:
        pytest.skip(missing() or "", allow_module_level=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return SkippedModule.from_parent(parent, path=module_path) if missing() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def _processes_find_these_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent), prepend=os.pathsep)


@pytest.fixture(scope="session")
def case() -> Callable[[str], Case]:
    """A prepared program by name."""
    return cache(lambda name: load_case(Path(os.environ["ETRT_GPU_CASES"]), name))
