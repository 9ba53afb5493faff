"""The demo's parts on a tiny encoder, then the demo itself."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from executorch_tensorrt.demo import kept as kept_module
from executorch_tensorrt.demo import run_demo
from executorch_tensorrt.demo.encoder import (
    PROFILES,
    Encoder,
    SentenceEncoder,
    declared_inputs,
    load_encoder,
)
from executorch_tensorrt.demo.kept import kept_export
from executorch_tensorrt.demo.phases import medians, merged
from executorch_tensorrt.demo.search import best_matches
from executorch_tensorrt.demo.texts import PASSAGES, QUERIES

REPOSITORY = Path(__file__).resolve().parents[2]
PHASES = {
    "delegate",
    "input_binding",
    "shape_inference",
    "output_binding",
    "enqueue_host",
    "output_staging",
    "synchronize",
}


class TinyTransformer(torch.nn.Module):
    """Stands in for MiniLM: an embedding of 1000 hashed words. It knows no meaning but that of equal words."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(1000, 8)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


def hashed_words(text: str, **_: Any) -> dict[str, np.ndarray]:
    ids = np.array([[zlib.crc32(word.encode()) % 1000 for word in text.lower().split()]])
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


@cache
def tiny() -> Encoder:
    return Encoder(SentenceEncoder(TinyTransformer()).eval(), hashed_words)


@cache
def minilm() -> Encoder:
    return load_encoder()


def silent(text: str) -> None:
    pass


def check_summary(summary: dict[str, Any], folder: Path) -> None:
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert summary["max_abs_error"] < 1e-4
    assert summary["profiles_used"] == [0, 1]
    assert [item["query"] for item in summary["queries"]] == list(QUERIES)
    assert {item["profile"] for item in summary["queries"]} == {0}
    assert {item["profile"] for item in summary["passages"]} == {1}
    assert set(summary["phases_us"]) == PHASES
    assert all(set(times) == PHASES for times in summary["phases_us_by_profile"].values())
    assert all(0 <= time < 1e6 for time in summary["phases_us"].values())
    assert summary["phases_us"]["delegate"] >= summary["phases_us"]["enqueue_host"]
    assert summary["export_seconds"] > 0
    assert "Which delegate regions ran" in (folder / "report.html").read_text(encoding="utf-8")


def test_run_demo_writes_what_it_returns_and_exports_once(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "demo"
    steps: list[str] = []
    first = run_demo(folder, steps.append, tiny)
    check_summary(first, folder)
    assert any("building engines" in step for step in steps)
    steps.clear()
    second = run_demo(folder, steps.append, tiny)
    check_summary(second, folder)
    assert not any("building engines" in step for step in steps)
    assert (first["export_reused"], second["export_reused"]) == (False, True)
    assert first["export_seconds"] == second["export_seconds"]
    assert [item["best"] for item in first["queries"]] == [item["best"] for item in second["queries"]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    assert not kept_export(folder, lambda: tiny().model, declared_inputs(), silent).reused
    return folder


def keep(exported: Path, folder: Path) -> None:
    for name in ("minilm.pte", "minilm.etrecord", "export.json"):
        (folder / name).write_bytes((exported / name).read_bytes())


def is_reused(folder: Path) -> bool:
    class ExportedError(Exception):
        pass

    def make() -> torch.nn.Module:
        raise ExportedError

    try:
        return kept_export(folder, make, declared_inputs(), silent).reused
    except ExportedError:
        return False


def test_kept_export_is_used_again(exported: Path, tmp_path: Path) -> None:
    keep(exported, tmp_path)
    assert is_reused(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "minilm.pte").unlink(),
        lambda folder: (folder / "minilm.etrecord").unlink(),
        lambda folder: (folder / "export.json").unlink(),
        lambda folder: (folder / "export.json").write_text("{"),
        lambda folder: (folder / "export.json").write_text("[]"),
        lambda folder: (folder / "minilm.pte").write_bytes((folder / "minilm.pte").read_bytes()[:-10]),
    ],
    ids=["no program", "no ETRecord", "no record", "half a record", "another record", "half a program"],
)
def test_kept_export_is_made_again_when_incomplete(
    damage: Callable[[Path], object], exported: Path, tmp_path: Path
) -> None:
    keep(exported, tmp_path)
    damage(tmp_path)
    assert not is_reused(tmp_path)


def test_kept_export_is_made_again_for_other_versions(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(exported, tmp_path)
    newer = {**kept_module.versions(), "torch": "99"}
    monkeypatch.setattr(kept_module, "versions", lambda: newer)
    assert not is_reused(tmp_path)


def test_kept_export_is_made_again_for_other_profiles(exported: Path, tmp_path: Path) -> None:
    keep(exported, tmp_path)
    inputs = declared_inputs()[:1]
    with pytest.raises(ZeroDivisionError):
        kept_export(tmp_path, lambda: 1 / 0, inputs, silent)  # type: ignore[arg-type]


def test_best_matches_are_the_nearest_by_cosine() -> None:
    passages = np.eye(3, dtype=np.float32)
    queries = np.array([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]], np.float32)
    assert best_matches(queries, passages) == [(2, pytest.approx(0.8)), (0, pytest.approx(1.0))]


def test_medians_are_over_all_calls() -> None:
    both = merged([{"a": [1.0, 9.0], "b": [2.0]}, {"a": [3.0]}])
    assert medians(both) == {"a": 3.0, "b": 2.0}


def test_texts_fit_the_profiles_they_are_written_for() -> None:
    queries, documents = ((entry["min_shape"][1], entry["max_shape"][1]) for entry in PROFILES)
    for text in QUERIES:
        assert queries[0] <= minilm().tokens(text)[0].shape[1] <= queries[1], text
    for passage in PASSAGES:
        assert documents[0] <= minilm().tokens(passage.text)[0].shape[1] <= documents[1], passage.title
    assert len({passage.title for passage in PASSAGES}) == len(PASSAGES) >= 24


def test_tokens_are_cut_to_the_largest_size() -> None:
    ids, mask = minilm().tokens("word " * 1000)
    assert ids.shape == mask.shape == (1, 256)
    assert ids.dtype == mask.dtype == np.int64


def test_load_encoder_leaves_the_environment_alone() -> None:
    before = dict(os.environ)
    load_encoder()
    assert dict(os.environ) == before


def test_demo_finds_the_right_passages(tmp_path: Path) -> None:
    """With the export of an earlier `make demo`, if there is one."""
    for name in ("minilm.pte", "minilm.etrecord", "export.json"):
        if (REPOSITORY / "build" / "demo" / name).is_file():
            (tmp_path / name).symlink_to(REPOSITORY / "build" / "demo" / name)
    summary = run_demo(tmp_path, silent, minilm)
    check_summary(summary, tmp_path)
    best = {item["query"]: item["best"] for item in summary["queries"]}
    assert list(best.values()) == [
        "Sourdough",
        "Tides",
        "Bee colony",
        "Batteries",
        "Language learning",
        "Migration of swallows",
        "Black holes",
        "Refrigerator",
    ]
