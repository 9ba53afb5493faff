"""These tests build engines with TensorRT-RTX, which needs no GPU for that; where it is not installed they skip."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from engines.cache_entries import JOB

from executorch_tensorrt.engines.tensorrt.cache import Entry, entry_for

MISSING = [name for name in ("onnx", "onnxscript", "tensorrt_rtx") if find_spec(name) is None]


class SkippedModule(pytest.Module):
    def collect(self) -> list[pytest.Item]:
        pytest.skip(f"no {', '.join(MISSING)}: pip install 'executorch-tensorrt[tensorrt]'", allow_module_level=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return SkippedModule.from_parent(parent, path=module_path) if MISSING else None


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a job's files; what is in them matters to TensorRT alone."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"graph")
    (folder / "model.onnx.data").write_bytes(b"weights")
    return folder


@pytest.fixture
def entry(model: Path, tmp_path: Path) -> Entry:
    return entry_for(tmp_path / "cache", JOB, model)
