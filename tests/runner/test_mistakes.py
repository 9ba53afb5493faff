"""etrt_runner: a mistake is one line and exit code 2, in the words of the Python command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from executorch_tensorrt.program import read_program

if TYPE_CHECKING:
    from conftest import Runner

Npy = Callable[[object], Path]

TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"
LONG = "x" * 300


def ones(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ([], "got 0 --input, allowed 1, or a multiple of it for further calls with other inputs"),
        ([ones(3, 4, dtype=np.float64)], "method 'forward' input 0: got dtype float64, allowed float32"),
        ([ones(4)], "input 0: got rank 1 (4,), allowed rank 2 (at most (64, 4))"),
        ([ones(3, 5)], "input 0 dim 1: got 5 in (3, 5), the program is planned for at most (64, 4)"),
        ([ones(65, 4)], "dim 0: got 65 in (65, 4), the program is planned for at most (64, 4)"),
        ([ones(9, 4)], "dim 0: got 9, allowed 1..8 in profile 0"),
        ([ones(0, 4)], "dim 0: got 0, allowed 1..8 in profile 0"),
        ([ones(3, 4), ones(3, 5)], "input 0 dim 1: got 5 in (3, 5)"),
    ],
)
def test_wrong_inputs_are_named(arrays: list[np.ndarray], told: str, rows: Path, runner: Runner, npy: Npy) -> None:
    given = [part for array in arrays for part in ("--input", npy(array))]
    assert told in runner(rows, *given, code=2).stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--optimization-profile", "2"], "optimization profile index: got 2, allowed 0..1"),
        (["--optimization-profile", "0,7"], "optimization profile index: got 7, allowed 0..1"),
        (["--optimization-profile", "-1"], "got '-1', allowed 'auto' or an index from 0"),
        (["--optimization-profile", "1,,0"], "got '', allowed 'auto' or an index from 0"),
        (["--optimization-profile", "9999999999"], "got '9999999999', allowed 'auto' or an index from 0"),
        (["--method", "backward"], "unknown method: got 'backward', allowed 'forward'"),
        (["--iterations", "0"], "Invalid value for '--iterations': got '0', allowed numbers from 1."),
        (["--iterations", "many"], "Invalid value for '--iterations': got 'many', allowed numbers from 1."),
        (["--warmup", "-1"], "Invalid value for '--warmup': got '-1', allowed numbers from 0."),
        (["--profile-level", "deep"], "got 'deep', allowed 'off', 'delegate', 'phases', 'layers'"),
        (["--profile-level", "phases"], "--profile-level has no effect: got no --etdump"),
        (["--profile-format", "csv"], "got 'csv', allowed 'etdump', 'perfetto', 'trex'"),
        (["--profile-level", "layers", "--profile-format", "trex"], "give 'torchtrt_profile_path_prefix'"),
        (["--profile-path-prefix", LONG], "load option 'torchtrt_profile_path_prefix': got 300 bytes, allowed 255"),
        (["--etdump", "/no/such/folder/a.etdp"], "no folder '/no/such/folder' for 'a.etdp'; make it first"),
        (["--save-outputs", "x.npy"], "'x.npy': Not a directory"),
        (["--input"], "Option '--input' requires an argument. See 'etrt_runner --help'."),
        (["--json=yes"], "Option '--json' does not take a value. See 'etrt_runner --help'."),
        (["--verbose"], "No such option '--verbose'. See 'etrt_runner --help'."),
        (["-v"], "No such option '-v'. See 'etrt_runner --help'."),
        (["more"], "Got unexpected extra argument (more). See 'etrt_runner --help'."),
    ],
)
def test_wrong_options_are_named(options: list[str], told: str, rows: Path, runner: Runner, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ones(3, 4))
    assert told in runner(rows, "--input", "x.npy", *options, code=2).stderr


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("none.npy", "--input 0: no file at 'none.npy'"),
        (".", "--input 0: no file at '.'"),
    ],
)
def test_missing_inputs_are_named(path: str, told: str, rows: Path, runner: Runner) -> None:
    assert told in runner(rows, "--input", path, code=2).stderr


def test_wrong_programs_are_named(rows: Path, runner: Runner, tmp_path: Path) -> None:
    assert "Missing argument 'PROGRAM'." in runner(code=2).stderr
    assert "no program at 'none.pte'" in runner("none.pte", code=2).stderr
    assert "'.' is a folder; give a .pte file" in runner(".", code=2).stderr
    (tmp_path / "text.pte").write_text("a program, once")
    assert "'text.pte' is no ExecuTorch program, or is damaged" in runner("text.pte", code=2).stderr
    (tmp_path / "half.pte").write_bytes(rows.read_bytes()[:2000])
    runner("half.pte", code=2)


def test_damaged_engines_are_refused(rows: Path, runner: Runner, npy: Npy, tmp_path: Path) -> None:
    data = rows.read_bytes()
    blob = bytes(read_program(data).methods[0].delegates[0].blob)
    (tmp_path / "damaged.pte").write_bytes(data.replace(blob, b"XXXX" + blob[4:]))
    line = runner("damaged.pte", "--input", npy(ones(3, 4)), code=2).stderr
    assert "engine blob is foreign: got magic 'XXXX'" in line


def test_engines_that_this_machine_cannot_run_are_refused(runner: Runner, npy: Npy) -> None:
    assert "'forward'" in runner(TORCH_TENSORRT, "--input", npy(ones(1, 1, 64)), code=2).stderr


def test_hostile_names_are_told_as_text(rows: Path, runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "odd.pte").write_bytes(rows.read_bytes().replace(b"forward", b"f\x1b]0;\n\x7f"))
    line = runner("odd.pte", "--method", "none", code=2).stderr.removesuffix("\n")
    assert line.isprintable()
    assert r"allowed 'f\x1b]0;\x0a\x7f'" in line


def test_number_of_inputs_is_told_with_their_types(programs: Path, runner: Runner, npy: Npy) -> None:
    line = runner(programs / "two_inputs.pte", "--input", npy(ones(1, 4)), code=2).stderr
    assert "got 1 --input, allowed 2" in line
    assert "the largest it takes are int64 (1, 32), int64 (1, 32)." in line


def test_advice_about_profiles_works(rows: Path, runner: Runner, npy: Npy) -> None:
    given = (rows, "--input", npy(ones(9, 4)))
    told = runner(*given, code=2).stderr
    assert "profile 1 accepts these shapes: use --optimization-profile 1 or auto" in told
    runner(*given, "--optimization-profile", "1")
    runner(*given, "--optimization-profile", "auto")
