"""These tests build engines with TensorRT-RTX, which needs no GPU for that; where it is not installed they skip."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

MISSING = [name for name in ("onnx", "onnxscript", "tensorrt_rtx") if find_spec(name) is None]


class SkippedModule(pytest.Module):
    def collect(self) -> list[pytest.Item]:
        pytest.skip(f"no {', '.join(MISSING)}: pip install 'executorch-tensorrt[tensorrt]'", allow_module_level=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return SkippedModule.from_parent(parent, path=module_path) if MISSING else None
