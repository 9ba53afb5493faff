"""`etrt advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import models
import numpy as np
import pytest

from executorch_tensorrt import Module, export
from executorch_tensorrt.profiling import Session, capture
from executorch_tensorrt.profiling.processors.advice.advise import MAX_PROFILES

if TYPE_CHECKING:
    from conftest import Etrt

SIZES = (1, 1, 12, 14, 60, 60)


def ones(size: int) -> tuple[Any, ...]:
    return (np.ones((1, size, 8), np.float32),)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide") / "wide.pte"
    path.write_bytes(models.wide().buffer)
    return path


@pytest.fixture(scope="module")
def recorded(wide: Path) -> Path:
    """A folder with 24 calls of `models.wide`, at the level that tells least."""
    capture(wide, [ones(size) for size in SIZES], runs=24, level="delegate", output=wide.parent / "run")
    return wide.parent / "run"


def test_advised_profiles_serve_every_recorded_call(wide: Path, tmp_path: Path, etrt: Etrt) -> None:
    inputs = [text for size in SIZES for text in ("--input", f"ones:float32[1,{size},8]")]
    etrt("profile", wide, *inputs, "--runs", 24, "--level", "delegate", "-o", tmp_path / "run")
    code = tmp_path / "inputs.py"
    report = json.loads(etrt("advise", tmp_path / "run", "--json", "--code", code).stdout)
    assert report["profiles"][0]["ranges"] == [[1, 1, 1]]
    assert report["profiles"][-1]["ranges"][0][::2] == [1, 64]
    assert [item["calls"] for item in report["profiles"]] == [8, 8, 8]

    names: dict[str, Any] = {}
    exec(code.read_text(), names)
    module = Module(export(models.wide().module, names["inputs"]).buffer, optimization_profile="auto")
    for size, profile in ((1, 0), (12, 1), (14, 1), (60, 2), (64, 2)):
        (output,) = module.forward(*ones(size))
        assert output.shape == (1, size, 16)
        assert [item.profile for item in module.last_selections] == [profile]


def test_advised_declarations_export_on_the_command_line(recorded: Path, tmp_path: Path, etrt: Etrt) -> None:
    declarations = json.loads(etrt("advise", recorded, "--json").stdout)["export_inputs"]
    (tmp_path / "model.py").write_text("import torch\ndef make():\n    return torch.nn.Linear(8, 16)\n")
    output = tmp_path / "again.pte"
    inputs = [text for item in declarations for text in ("--input", item)]
    etrt("export", f"{tmp_path / 'model.py'}:make", *inputs, "-o", output)
    etrt("run", output, "--input", "ones:float32[1,60,8]", "--optimization-profile", "auto")


def test_advise_prints_the_proposal_and_writes_files(recorded: Path, tmp_path: Path, etrt: Etrt) -> None:
    page, code = tmp_path / "advice.html", tmp_path / "inputs.py"
    result = etrt("advise", recorded, "--html", page, "--code", code)
    assert "Proposed optimization profiles" in result.stdout
    assert f"Wrote {page}\nWrote {code}\n" in result.stdout
    assert code.read_text() in result.stdout
    assert page.read_text().startswith("<!doctype html>")
    assert f"Wrote {page}" in etrt("advise", recorded, "--json", "--html", page).stderr


def test_advise_takes_the_limits_it_is_given(recorded: Path, etrt: Etrt) -> None:
    report = json.loads(etrt("advise", recorded, "--json", "--max-profiles", 1, "--recorded-only").stdout)
    assert [item["ranges"][0][::2] for item in report["profiles"]] == [[1, 60]]


def test_advise_counts_the_calls_of_all_sessions(recorded: Path, wide: Path, etrt: Etrt) -> None:
    dump = recorded / "trace.etdp"
    assert json.loads(etrt("advise", recorded, recorded, "--json").stdout)["calls"] == 48
    assert json.loads(etrt("advise", dump, dump, "--program", wide, "--json").stdout)["calls"] == 48


def test_advise_estimates_a_gain_from_a_pinned_recording(tmp_path: Path, etrt: Etrt) -> None:
    """Profile 1 of `rows` accepts 4 to 64 rows, so 4 and 8 can be recorded on both."""
    (tmp_path / "rows.pte").write_bytes(models.rows().buffer)
    inputs = [(np.ones((rows, 4), np.float32),) for rows in (4, 8)]
    for name, profile in (("auto", "auto"), ("pinned", 1)):
        capture(
            tmp_path / "rows.pte",
            inputs,
            runs=12,
            level="delegate",
            optimization_profile=profile,
            output=tmp_path / name,
        )
    assert json.loads(etrt("advise", tmp_path / "auto", "--json").stdout)["gain"] is None
    report = json.loads(etrt("advise", tmp_path / "auto", tmp_path / "pinned", "--json").stdout)
    assert report["gain"] is not None
    assert report["chosen"]["expected_us"] > 0


def changed(recorded: Path, folder: Path, **fields: Any) -> Path:
    folder.mkdir()
    data = json.loads((recorded / "session.json").read_text()) | fields
    (folder / "session.json").write_text(json.dumps(data))
    return folder


def test_advise_tells_what_is_wrong_with_sessions(recorded: Path, wide: Path, tmp_path: Path, etrt: Etrt) -> None:
    other = changed(recorded, tmp_path / "other", program={"name": "o.pte", "size_bytes": 1, "sha256": "0"})
    assert "different programs: got 'wide.pte'" in etrt("advise", recorded, other, code=2).stderr
    empty = changed(recorded, tmp_path / "empty", runs=[])
    assert "sessions have no calls" in etrt("advise", empty, code=2).stderr
    assert "no calls of this method: got 'decode'" in etrt("advise", recorded, "--method", "decode", code=2).stderr
    assert "add --program" in etrt("advise", recorded / "trace.etdp", code=2).stderr
    told = etrt("advise", recorded / "trace.etdp", "--program", wide, "--method", "decode", code=2).stderr
    assert "no such method: got 'decode'" in told
    (tmp_path / "half.json").write_bytes((recorded / "session.json").read_bytes()[:5000])
    assert "is no session" in etrt("advise", tmp_path / "half.json", code=2).stderr
    assert "no session at" in etrt("advise", tmp_path / "gone", code=2).stderr


def test_advise_has_nothing_to_say_of_static_programs(tmp_path: Path, etrt: Etrt) -> None:
    capture(models.no_inputs().buffer, (), runs=3, level="delegate", output=tmp_path / "none")
    assert (
        "nothing to advise: got method 'forward' with static inputs" in etrt("advise", tmp_path / "none", code=2).stderr
    )


def test_advise_names_the_level_that_records_shapes(wide: Path, tmp_path: Path, etrt: Etrt) -> None:
    module = Module(wide, etdump=True)
    module.forward(*ones(3))
    module.write_etdump(tmp_path / "off.etdp")
    told = etrt("advise", tmp_path / "off.etdp", "--program", wide, code=2).stderr
    assert "allowed calls traced at level delegate, phases or layers" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "wrong number of sessions: got 0, allowed one or more"),
        (("run", "--max-profiles", 0), "0 is not in the range 1<=x<=16"),
        (("run", "--html", "gone/advice.html"), "no folder 'gone' for 'advice.html'"),
        (("run", "--code", "gone/inputs.py"), "no folder 'gone' for 'inputs.py'"),
    ],
)
def test_advise_tells_mistakes_in_one_line(arguments: tuple[Any, ...], told: str, etrt: Etrt) -> None:
    assert told in etrt("advise", *arguments, code=2).stderr


def test_advise_refuses_a_file_that_cannot_be_written(recorded: Path, tmp_path: Path, etrt: Etrt) -> None:
    assert etrt("advise", recorded, "--html", tmp_path, code=2).stdout == ""  # before the work
    etrt("advise", recorded, "--html", tmp_path / ("n" * 10_000), code=2)
    assert list(tmp_path.iterdir()) == []


def test_advise_has_one_default_for_the_number_of_profiles(etrt: Etrt) -> None:
    assert f"[default: {MAX_PROFILES}; 1<=x<=16]" in " ".join(etrt("advise", "--help").stdout.split())


def test_advise_leaves_the_sessions_alone(recorded: Path, etrt: Etrt) -> None:
    before = {path.name: path.read_bytes() for path in recorded.iterdir()}
    etrt("advise", recorded)
    assert {path.name: path.read_bytes() for path in recorded.iterdir()} == before
    assert len(Session.load(recorded).runs) == 24
