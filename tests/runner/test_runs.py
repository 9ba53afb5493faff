"""etrt_runner: its calls, what it tells and what it writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import models
import numpy as np
import pytest
import torch
from executorch.devtools import Inspector

from executorch_tensorrt import Input, Module, export
from executorch_tensorrt.native_files import native_folder

if TYPE_CHECKING:
    from conftest import Runner

Report = Callable[..., dict[str, Any]]
Npy = Callable[[object], Path]


def ones(*shape: int, dtype: type = np.float32) -> np.ndarray[Any, Any]:
    return np.ones(shape, dtype)


def test_runner_prints_profiles_and_times(rows: Path, runner: Runner, npy: Npy) -> None:
    output = runner(rows, "--input", npy(ones(6, 4)), "--optimization-profile", "1,0,0,auto", "--iterations", 8).stdout
    header, *lines = output.splitlines()
    assert header.split() == ["request", "inputs", "profiles", "used", "calls", "median", "p90", "p99"]
    time = r"\d+(\.\d+)? (µs|ms|s)"
    told = [re.fullmatch(rf"(\S+) +(\(6, 4\))? +(\d)? +(\d)((  +{time}){{3}})", line) for line in lines[:4]]
    assert [match.group(1, 3, 4) for match in told if match] == [
        ("1", "1", "2"),
        ("0", "0", "4"),
        ("auto", "0", "2"),
        ("all", None, "8"),
    ]
    assert re.fullmatch(r"Engines: [0-9a-f]{12}", lines[4])
    assert re.fullmatch(rf"Loading \d+\.\d ms; first call {time}", lines[5])


def test_runner_gives_json(rows: Path, report: Report, npy: Npy) -> None:
    told = report(rows, "--input", npy(ones(3, 4)), "--iterations", 20, "--warmup", 2)
    (call,) = told["calls"]
    (delegate,) = call["delegates"]
    assert re.fullmatch("[0-9a-f]{12}", delegate["engine_id"])
    latency = told["latency_us"]
    assert list(latency) == ["iterations", "min", "median", "p90", "p99", "max"]
    assert latency["iterations"] == 20
    assert 0 < latency["min"] <= latency["median"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert call == {
        "optimization_profile": "default",
        "input_set": 0,
        "delegates": [{"engine_id": delegate["engine_id"], "profile": 0}],
        "latency_us": latency,
    }
    assert told["load_ms"] > 0
    assert told["first_call_us"] > 0
    assert {key: told[key] for key in told if key not in ("calls", "latency_us", "load_ms", "first_call_us")} == {
        "program": str(rows),
        "method": "forward",
        "optimization_profiles": ["default"],
        "inputs": [[{"dtype": "float32", "shape": [3, 4]}]],
        "outputs": [{"dtype": "float32", "shape": [3, 4]}],
        "etdump": None,
        "saved": [],
    }


def test_requests_and_inputs_take_turns(rows: Path, report: Report, npy: Npy) -> None:
    inputs = ("--input", npy(ones(40, 4)), "--input", npy(ones(3, 4)))
    told = report(rows, *inputs, "--optimization-profile", "1,0,1,auto", "--iterations", 10)
    assert told["optimization_profiles"] == [1, 0, 1, "auto"]
    found = [
        (c["optimization_profile"], c["input_set"], c["delegates"][0]["profile"], c["latency_us"]["iterations"])
        for c in told["calls"]
    ]
    assert found == [(1, 0, 1, 5), (0, 1, 0, 3), ("auto", 1, 0, 2)]
    assert told["latency_us"]["iterations"] == 10


def test_one_round_is_run_unless_told_otherwise(rows: Path, report: Report, npy: Npy) -> None:
    told = report(rows, "--input", npy(ones(6, 4)), "--optimization-profile", "1,0,0,auto")
    assert [call["latency_us"]["iterations"] for call in told["calls"]] == [1, 2, 1]


def test_request_that_had_no_turn_has_no_times(rows: Path, report: Report, npy: Npy) -> None:
    given = (rows, "--input", npy(ones(6, 4)), "--optimization-profile", "1,0", "--iterations", 1)
    used, unused = report(*given)["calls"]
    assert (used["latency_us"]["iterations"], unused["latency_us"], unused["delegates"]) == (1, None, [])
    warm = report(*given, "--warmup", 1)["calls"][1]
    assert (warm["latency_us"], warm["delegates"][0]["profile"]) == (None, 0)


@pytest.mark.parametrize(
    ("profile", "count", "used"), [(None, 3, 0), ("auto", 3, 0), ("auto", 9, 1), ("1", 5, 1), ("0", 5, 0)]
)
def test_profile_asked_for_is_used(
    profile: str | None, count: int, used: int, rows: Path, report: Report, npy: Npy
) -> None:
    option = () if profile is None else ("--optimization-profile", profile)
    (call,) = report(rows, "--input", npy(ones(count, 4)), *option)["calls"]
    assert [delegate["profile"] for delegate in call["delegates"]] == [used]


def test_profile_of_each_engine_is_told(programs: Path, report: Report, npy: Npy) -> None:
    inputs = ("--input", npy(ones(1, 4)), "--input", npy(ones(6, 4)))
    told = report(programs / "static_beside_dynamic.pte", *inputs, "--optimization-profile", "auto")
    assert sorted(item["profile"] for item in told["calls"][0]["delegates"]) == [0, 1]


def test_outputs_are_saved_as_eager_computes_them(rows: Path, report: Report, npy: Npy, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    told = report(rows, "--input", npy(x), "--optimization-profile", "0,1", "--save-outputs", tmp_path / "new" / "out")
    assert told["saved"] == [str(tmp_path / "new" / "out" / "output_0.npy")]
    saved = np.load(told["saved"][0])
    assert saved.flags["C_CONTIGUOUS"]
    np.testing.assert_allclose(saved, models.rows().eager(torch.from_numpy(x))[0].numpy(), rtol=1e-5)


def test_integers_and_zero_dims_are_saved(programs: Path, report: Report, npy: Npy, tmp_path: Path) -> None:
    x = npy(ones(1, 5, dtype=np.int64))
    told = report(programs / "two_inputs.pte", "--input", x, "--input", x, "--save-outputs", tmp_path)
    kept, total = (np.load(path) for path in told["saved"])
    np.testing.assert_array_equal(kept, ones(1, 5, dtype=np.int64))
    assert (kept.dtype, total.dtype, total.shape, total) == (np.int64, np.float32, (), 5)


def test_methods_without_inputs_and_zero_sizes_run(report: Report, npy: Npy, tmp_path: Path) -> None:
    (tmp_path / "none.pte").write_bytes(models.no_inputs().buffer)
    told = report("none.pte", "--save-outputs", "out")
    np.testing.assert_array_equal(np.load(tmp_path / told["saved"][0]), [3, 3])
    (tmp_path / "edges.pte").write_bytes(models.edge_shapes().buffer)
    given = ("--input", npy(np.float32(2)), "--input", npy(ones(3, 4)))
    told = report("edges.pte", *given, "--save-outputs", "out")
    assert [np.load(tmp_path / path).shape for path in told["saved"]] == [(3, 0), (3, 4), ()]


def test_types_that_numpy_lacks_are_not_saved(runner: Runner, report: Report, npy: Npy, tmp_path: Path) -> None:
    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x > 0, x.to(torch.bfloat16)

    export(Halves().eval(), [Input((2,))]).save(tmp_path / "halves.pte")
    given = ("halves.pte", "--input", npy(ones(2)))
    assert [output["dtype"] for output in report(*given)["outputs"]] == ["bool", "bfloat16"]
    told = runner(*given, "--save-outputs", "out", code=2).stderr
    assert "output 1 cannot be saved: NumPy lacks its type; run without --save-outputs." in told


def test_etdump_holds_the_timed_calls(rows: Path, report: Report, npy: Npy, tmp_path: Path) -> None:
    given = ("--input", npy(ones(6, 4)), "--iterations", 3, "--warmup", 2)
    told = report(rows, *given, "--profile-level", "phases", "--etdump", "rows.etdp")
    assert told["etdump"] == {"path": "rows.etdp", "dropped": 0}
    events = [
        event for block in Inspector(str(tmp_path / "rows.etdp")).event_blocks for event in block.events if event.name
    ]
    counts = {event.name: len(event.perf_data.raw) for event in events if event.name.startswith("torchtrt.")}
    assert len(counts) == 7
    assert set(counts.values()) == {3}


def test_profiling_off_leaves_executorchs_events(rows: Path, runner: Runner, npy: Npy, tmp_path: Path) -> None:
    output = runner(rows, "--input", npy(ones(6, 4)), "--etdump", "rows.etdp").stdout
    assert "Events in rows.etdp" in output
    names = [event.name for block in Inspector(str(tmp_path / "rows.etdp")).event_blocks for event in block.events]
    assert "DELEGATE_CALL" in names
    assert not [name for name in names if name.startswith("torchtrt.")]


@pytest.mark.parametrize("trace", ["perfetto", "trex"])
def test_trace_files_are_written(trace: str, rows: Path, runner: Runner, npy: Npy, tmp_path: Path) -> None:
    options = ("--profile-level", "layers", "--profile-format", trace, "--profile-path-prefix", tmp_path)
    runner(rows, "--input", npy(ones(6, 4)), *options)
    (path,) = tmp_path.glob(f"forward-*.{trace}.json")
    assert json.loads(path.read_text())


def test_runner_and_module_give_the_same_numbers(programs: Path, report: Report, npy: Npy, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((size, 4)).astype(np.float32) for size in (20, 1))
    given = ("--input", npy(x), "--input", npy(w), "--optimization-profile", "1")
    told = report(programs / "mixed.pte", *given, "--save-outputs", tmp_path)
    expected = Module(programs / "mixed.pte", optimization_profile=1).forward(x, w)[0]
    np.testing.assert_array_equal(np.load(told["saved"][0]), expected)


def test_log_is_shown_for_debugging_alone(rows: Path, runner: Runner, npy: Npy) -> None:
    given = (rows, "--input", npy(ones(9, 4)))
    assert "Error" not in runner(*given, code=2).stdout
    with pytest.raises(AssertionError, match="dim 0: got 9"):  # more than the one line
        runner(*given, "--debug", code=2)


def test_version_and_help_are_printed(runner: Runner) -> None:
    assert re.fullmatch(r"etrt_runner \d+\.\d+\.\d+ \(executorch \S+\)\n", runner("--version").stdout)
    for flag in ("-h", "--help"):
        lines = runner(flag).stdout.splitlines()
        assert lines[0] == "Usage: etrt_runner [OPTIONS] PROGRAM"
        assert max(map(len, lines)) < 80


def test_results_that_cannot_be_printed_are_a_failure(rows: Path, npy: Npy) -> None:
    with Path("/dev/full").open("w") as full:
        command = [native_folder() / "bin" / "etrt_runner", rows, "--input", npy(ones(3, 4))]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (1, "etrt_runner: cannot print: No space left on device\n")


def test_command_of_the_package_is_the_runner(rows: Path, npy: Npy) -> None:
    command = f"'{Path(sys.executable).parent / 'etrt_runner'}' '{rows}' --input '{npy(ones(3, 4))}'"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout.startswith("request ")
    closed = subprocess.run(f"{command} | true", shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert closed.stderr == ""
