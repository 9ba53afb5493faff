"""examples/3_profile_slow_model: the report names the operator that is slow, and the call is faster without it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_tensorrt.profiling import Session, processors

if TYPE_CHECKING:
    from conftest import RunExample, RunPage


def test_walk_finds_the_slow_layer_and_mends_it(run_example: RunExample, run_page: RunPage, tmp_path: Path) -> None:
    told = run_example("3_profile_slow_model/find_why.py")
    differences = re.findall(r"(slow|fixed)\.pte: largest difference from PyTorch (\S+)", told)
    assert [name for name, _ in differences] == ["slow", "fixed"]
    assert all(float(difference) < 1e-5 for _, difference in differences)

    assert "of all layer time on the host" in told
    assert "It comes from aten.conv1d.default in body." in told
    before, after = Session.load(tmp_path / "before"), Session.load(tmp_path / "after")
    (source,) = processors.layers(before)[0].sources
    assert (source.module, source.op) == ("body", "aten.conv1d.default")
    slow, fixed = (processors.spread(session)[0].wall.median_us for session in (before, after))
    assert fixed < slow / 2
    page = run_page("3_profile_slow_model", tmp_path)
    assert "Wrote before.html" in page
    assert "Not the same: the program: slow.pte" in page
