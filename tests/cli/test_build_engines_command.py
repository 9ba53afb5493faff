"""`etrt build-engines`, between two runs of `etrt export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from engines.missing import without

from executorch_tensorrt.program import read_program

if TYPE_CHECKING:
    from conftest import Etrt

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.bitwise_and(x, 3) * 2
"""


@pytest.fixture
def export(tmp_path: Path) -> list[object]:
    """A command."""
    (tmp_path / "model_to_ask_for.py").write_text(MODEL)
    model, output, cache = tmp_path / "model_to_ask_for.py:Model", tmp_path / "model.pte", tmp_path / "cache"
    options = ["--input", "int64[1:2:4|5:6:8,3]", "--engine", "tensorrt_rtx", "--engine-cache", cache]
    return ["export", model, "-o", output, *options]


def test_build_engines_lets_the_export_complete(export: list[object], tmp_path: Path, etrt: Etrt) -> None:
    cache = tmp_path / "cache"
    with without("tensorrt_rtx"):
        told = etrt(*export, code=1).stderr.splitlines()[-1]
        assert told.startswith(f"etrt: engines are missing: got 1 build request in '{cache}', wanted the engines; run ")
        failed = etrt("build-engines", cache, code=1)
        assert "engine 'tensorrt_rtx' can't be built here: got no Python module 'tensorrt_rtx'" in failed.stderr
        assert "1 failed.\n" in failed.stdout
    refused = etrt("build-engines", cache, code=1)
    assert ": aten.bitwise_and.Scalar stays outside: TensorRT-RTX's parser refuses BitwiseAnd: " in refused.stderr
    assert "1 refused; export again." in refused.stdout
    with without("tensorrt_rtx"):
        etrt(*export, code=1)
    built = etrt("build-engines", cache, "--json")
    assert " of 2: Building engine" in built.stderr
    report = json.loads(built.stdout)
    assert report["folder"] == str(cache)
    engines = {engine["status"]: engine for engine in report["engines"]}
    assert set(engines) == {"built", "refused"}
    assert engines["built"]["builder"].startswith("TensorRT-RTX ")
    assert (engines["built"]["profiles"], engines["built"]["bytes"] > 0) == (2, True)
    assert "1 present, 1 refused; export again." in etrt("build-engines", cache).stdout
    with without("tensorrt_rtx"):
        etrt(*export)
    assert len(read_program(tmp_path / "model.pte").methods[0].delegates) == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [("missing", "No such file or directory"), ("file", "Not a directory"), ("empty", "nothing to build")],
)
def test_build_engines_names_what_is_wrong(name: str, told: str, tmp_path: Path, etrt: Etrt) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    assert told in etrt("build-engines", tmp_path / name, code=2).stderr
