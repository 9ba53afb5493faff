"""Another library that has the name TensorRTBackend in the process: everything says so, and nothing breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBLEM = "backend 'TensorRTBackend' of executorch_tensorrt is not in use: another library ({}) has registered it"


class Namesake:
    """Processes with the other library, by which ours is loaded late."""

    def __init__(self, build_dir: Path) -> None:
        self.native = build_dir / "native"
        self.tests = build_dir / "tests" / "native"
        self.library = self.tests / "libetrt_namesake.so"
        self.problem = PROBLEM.format(self.library)

    def run(self, *command: str | Path, linked: bool = False) -> subprocess.CompletedProcess[str]:
        """Libraries that a program is linked to begin in the reverse of the order in which they are preloaded."""
        preloaded = [self.native / "libexecutorch_tensorrt.so", self.library] if linked else [self.library]
        environment = {**os.environ, "LD_PRELOAD": ":".join(map(str, preloaded))}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=environment
        )  # fmt: skip

    def etrt(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run(Path(sys.executable).parent / "etrt", *arguments)


@pytest.fixture(scope="module")
def namesake(build_dir: Path) -> Namesake:
    found = Namesake(build_dir)
    if not found.library.is_file():
        pytest.skip("this build has no other library")
    return found


def without_breaks(text: str) -> str:
    """ExecuTorch's log cuts lines."""
    return "".join(line.partition("] ")[2] for line in text.splitlines() if "log.cpp" in line)


def test_stock_module_in_cpp_is_told_by_the_log_and_the_last_error(namesake: Namesake, rows: Path) -> None:
    result = namesake.run(namesake.tests / "etrt_guard_program", rows, "6", "default", linked=True)
    assert result.stdout.startswith(f"error {namesake.problem}")
    assert without_breaks(result.stderr).startswith(namesake.problem)


def test_runner_refuses_engines_in_words(namesake: Namesake, rows: Path, tmp_path: Path) -> None:
    import numpy as np

    np.save(tmp_path / "x.npy", np.ones((6, 4), np.float32))
    arguments = [rows, "--input", tmp_path / "x.npy"]
    result = namesake.run(namesake.native / "etrt_runner", *arguments, linked=True)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith(f"etrt_runner: method 'forward' does not load: {namesake.problem}")


def test_wrapper_of_the_runner_starts_it(namesake: Namesake) -> None:
    result = namesake.run(Path(sys.executable).parent / "etrt_runner", "--version")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("etrt_runner ")
    assert namesake.problem in result.stderr
    assert "Traceback" not in result.stderr


def test_doctor_tells_whose_the_backend_is(namesake: Namesake) -> None:
    result = namesake.etrt("doctor", "--json")
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    assert report["backend_registered"] is False
    assert report["backend_problem"].startswith(namesake.problem)
    assert {item["reason"] for item in report["engines"]} == {"the backend is another library's in this process"}
    assert not any(item["runs"] for item in report["engines"])
    shown = namesake.etrt("doctor")
    assert shown.returncode == 1
    assert "another library" in shown.stdout
    assert "Traceback" not in shown.stderr


def test_inspect_reads_programs_and_says_that_they_do_not_run(namesake: Namesake, rows: Path) -> None:
    result = namesake.etrt("inspect", rows)
    assert result.returncode == 0, result.stderr
    assert "does not run in this environment" in result.stdout
    assert namesake.problem in result.stderr


def test_run_refuses_engines_in_one_line(namesake: Namesake, rows: Path) -> None:
    result = namesake.etrt("run", rows, "--input", "random:float32[6,4]")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith(f"etrt: method 'forward' does not load: {namesake.problem}")


PYTHON = """
import sys, warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import executorch_tensorrt
    from executorch_tensorrt.runtime import take_last_error
assert [item.category for item in told] == [RuntimeWarning], told
assert take_last_error() == str(told[0].message)
try:
    executorch_tensorrt.Module(sys.argv[1]).load_method("forward")
except executorch_tensorrt.ExecuTorchError as error:
    print(error)
"""


def test_import_warns_and_module_refuses_engines(namesake: Namesake, rows: Path) -> None:
    result = namesake.run(sys.executable, "-c", PYTHON, rows)
    assert result.stdout.startswith(f"method 'forward' does not load: {namesake.problem}"), result.stderr


def test_ours_is_registered_without_another() -> None:
    from executorch_tensorrt import _native

    assert _native.backend_is_registered()
    assert _native.backend_problem() == ""
