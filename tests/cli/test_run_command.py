"""`etrt run`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import models
import numpy as np
import pytest
import torch

from executorch_tensorrt import Input, export
from executorch_tensorrt.program import read_program

if TYPE_CHECKING:
    from conftest import Etrt

TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def report_of(etrt: Etrt, *arguments: object) -> dict[str, Any]:
    return json.loads(etrt("run", *arguments, "--json").stdout)


def test_run_prints_outputs_profiles_and_times(rows: Path, etrt: Etrt) -> None:
    output = etrt("run", rows, "--input", "random:float32[3,4]").stdout
    for text in ("Outputs", "float32", "(3, 4)", "Optimization profiles used", "Time: ", "loading "):
        assert text in output


def test_run_gives_json(rows: Path, etrt: Etrt) -> None:
    report = report_of(etrt, rows, "--input", "ones:float32[3,4]", "--iterations", 20, "--warmup", 2)
    assert report["inputs"] == [{"dtype": "float32", "shape": [3, 4]}]
    (output,) = report["outputs"]
    expected = models.rows().eager(torch.ones(3, 4))[0].numpy()
    assert (output["dtype"], output["shape"]) == ("float32", [3, 4])
    assert output["max"] == pytest.approx(expected.max(), abs=1e-5)
    assert output["mean"] == pytest.approx(expected.mean(), abs=1e-5)
    latency = report["latency_us"]
    assert latency["iterations"] == 20
    assert 0 < latency["min"] <= latency["median"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert (report["optimization_profile"], report["method"], report["etdump"]) == ("default", "forward", None)
    assert report["load_ms"] > 0


@pytest.mark.parametrize(
    ("profile", "count", "used"), [(None, 3, 0), ("auto", 3, 0), ("auto", 9, 1), ("1", 5, 1), ("0", 5, 0)]
)
def test_run_uses_the_profile_asked_for(profile: str | None, count: int, used: int, rows: Path, etrt: Etrt) -> None:
    option = () if profile is None else ("--optimization-profile", profile)
    (delegate,) = report_of(etrt, rows, "--input", f"ones:float32[{count},4]", *option)["delegates"]
    assert delegate["profile"] == used
    assert len(delegate["engine_id"]) == 12


def test_run_tells_the_profile_of_each_engine(programs: Path, etrt: Etrt) -> None:
    inputs = ("--input", "ones:float32[1,4]", "--input", "ones:float32[6,4]")
    report = report_of(etrt, programs / "static_beside_dynamic.pte", *inputs, "--optimization-profile", "auto")
    assert sorted(item["profile"] for item in report["delegates"]) == [0, 1]


def test_run_reads_and_saves_npy_files(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    report = report_of(etrt, rows, "--input", tmp_path / "x.npy", "--save-outputs", tmp_path / "new" / "folder")
    assert report["saved"] == [str(tmp_path / "new" / "folder" / "output_0.npy")]
    expected = models.rows().eager(torch.from_numpy(x))[0].numpy()
    np.testing.assert_allclose(np.load(report["saved"][0]), expected, atol=1e-5)


def test_run_takes_inputs_in_order(programs: Path, etrt: Etrt) -> None:
    inputs = ("--input", "arange:int64[1,4]", "--input", "ones:int64[1,4]")
    kept, total = report_of(etrt, programs / "two_inputs.pte", *inputs)["outputs"]
    assert (kept["shape"], kept["max"], total["shape"], total["mean"]) == ([1, 4], 3, [], 6)


def test_run_shows_what_numpy_has_no_type_for(tmp_path: Path, etrt: Etrt) -> None:
    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.to(torch.bfloat16), x > 0

    export(Halves().eval(), [Input((2,))]).save(tmp_path / "halves.pte")
    given = ("--input", "ones:float32[2]")
    half, flags = report_of(etrt, tmp_path / "halves.pte", *given)["outputs"]
    assert half == {"dtype": "bfloat16", "shape": None}
    assert (flags["dtype"], flags["shape"], flags["mean"]) == ("bool", [2], 1.0)
    assert "not shown" in etrt("run", tmp_path / "halves.pte", *given).stdout
    told = etrt("run", tmp_path / "halves.pte", *given, "--save-outputs", tmp_path / "out", code=2).stderr
    assert "output 0 cannot be saved: NumPy lacks its type" in told


def test_run_repeats_random_inputs_for_a_seed(rows: Path, etrt: Etrt) -> None:
    results = [report_of(etrt, rows, "--input", "random:float32[3,4]", "--seed", seed)["outputs"] for seed in (1, 1, 2)]
    assert results[0] == results[1] != results[2]


def test_run_writes_an_etdump_of_the_timed_calls(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    from executorch.devtools import Inspector

    etdump = tmp_path / "rows.etdp"
    level = ("--profile-level", "phases", "--etdump", etdump)
    report = report_of(etrt, rows, "--input", "ones:float32[3,4]", "--iterations", 3, "--warmup", 2, *level)
    assert report["etdump"] == {"path": str(etdump), "dropped": 0}
    counts = {
        event.name: len(event.perf_data.raw)
        for block in Inspector(str(etdump)).event_blocks
        for event in block.events
        if event.name.startswith("torchtrt.")
    }
    assert len(counts) == 7
    assert set(counts.values()) == {3}


def test_run_shows_progress_on_stderr_for_many_calls(rows: Path, etrt: Etrt) -> None:
    result = etrt("run", rows, "--input", "ones:float32[1,4]", "--iterations", 30)
    assert "running 'forward' 30 times" in result.stderr
    assert "of 30 calls" in result.stdout


def test_run_suggests_inputs_that_it_then_takes(programs: Path, etrt: Etrt) -> None:
    program = programs / "two_inputs.pte"
    told = etrt("run", program, code=2).stderr
    assert "got 0 --input, allowed 2" in told
    specs = re.findall(r"--input '(.*?)'", told)
    assert specs == ["random:int64[1,32]"] * 2
    etrt("run", program, "--input", specs[0], "--input", specs[1], "--optimization-profile", "auto")


ROWS = "ones:float32[3,4]"


@pytest.mark.parametrize(
    ("inputs", "options", "told"),
    [
        ([ROWS, ROWS], [], "got 2 --input, allowed 1"),
        (["ones:float64[3,4]"], [], "got dtype float64, allowed float32"),
        (["ones:float32[4]"], [], "got rank 1 (4,), allowed rank 2"),
        (["ones:float32[3,5]"], [], "got 5 in (3, 5)"),
        (["ones:float32[9,4]"], [], "dim 0: got 9, allowed 1..8 in profile 0"),
        (["ones:float32[65,4]"], [], "got 65 in (65, 4), the program is planned for at most (64, 4)"),
        (["ones:float32[0,4]"], [], "dim 0: got 0, allowed 1..8 in profile 0"),
        (["ones:float32[0,4]"], ["--optimization-profile", "auto"], "no optimization profile accepts 'input_1' (0, 4)"),
        (["none.npy"], [], "no file at 'none.npy'"),
        (["ones"], [], "--input 0 is not valid: got 'ones'"),
        ([ROWS], ["--optimization-profile", "2"], "optimization profile index: got 2, allowed 0..1"),
        ([ROWS], ["--optimization-profile", "-1"], "got '-1', allowed 'auto' or an index from 0"),
        ([ROWS], ["--optimization-profile", "last"], "got 'last', allowed 'auto' or an index from 0"),
        ([ROWS], ["--method", "backward"], "unknown method: got 'backward', allowed 'forward'"),
        ([ROWS], ["--iterations", "0"], "0 is not in the range x>=1"),
        ([ROWS], ["--profile-level", "deep"], "'deep' is not one of 'off', 'delegate', 'phases', 'layers'"),
        ([ROWS], ["--profile-level", "phases"], "--profile-level has no effect: got no --etdump"),
        ([ROWS], ["--etdump", "/no/such/folder/a.etdp"], "no folder '/no/such/folder' for 'a.etdp'"),
    ],
)
def test_run_names_what_is_wrong(inputs: list[str], options: list[str], told: str, rows: Path, etrt: Etrt) -> None:
    given = [part for value in inputs for part in ("--input", value)]
    assert told in etrt("run", rows, *given, *options, code=2).stderr


def test_run_refuses_a_damaged_engine(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    data = rows.read_bytes()
    blob = bytes(read_program(data).methods[0].delegates[0].blob)
    program = tmp_path / "damaged.pte"
    program.write_bytes(data.replace(blob, b"XXXX" + blob[4:]))
    assert "engine blob is foreign: got magic 'XXXX'" in etrt("run", program, "--input", ROWS, code=2).stderr


def test_run_refuses_an_engine_that_this_machine_cannot_run(etrt: Etrt) -> None:
    assert "forward" in etrt("run", TORCH_TENSORRT, "--input", "ones:float32[1,1,64]", code=2).stderr


@pytest.mark.parametrize("choice", ["1", "auto"])
def test_run_tells_a_miss_with_its_own_option(choice: str, rows: Path, etrt: Etrt) -> None:
    arguments = ("run", rows, "--input", "ones:float32[9,4]")
    assert "profile 1 accepts these shapes: use --optimization-profile 1 or auto" in etrt(*arguments, code=2).stderr
    etrt(*arguments, "--optimization-profile", choice)


def test_run_says_that_no_delegate_is_tensorrt(tmp_path: Path, etrt: Etrt) -> None:
    path = tmp_path / "stock.pte"
    path.write_bytes(models.stock_program(torch.nn.Tanh(), torch.ones(2)))
    assert "Optimization profiles used: none" in etrt("run", path, "--input", "ones:float32[2]").stdout
    assert "Delegates: none" in etrt("inspect", path).stdout
