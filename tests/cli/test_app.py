"""What all commands have in common."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import executorch_tensorrt
from executorch_tensorrt.cli import app, contents, failures

if TYPE_CHECKING:
    from conftest import Etrt

ETRT = Path(sys.executable).with_name("etrt")


def test_version_is_the_package_s(etrt: Etrt) -> None:
    assert etrt("--version").stdout == f"etrt {executorch_tensorrt.__version__}\n"


def test_no_arguments_show_the_help(etrt: Etrt) -> None:
    output = etrt().stdout
    assert all(name in output for name in ("export", "run", "inspect", "demo"))
    assert output == etrt("--help").stdout == etrt("-h").stdout


def test_help_lists_commands_in_the_order_of_a_user_s_work(etrt: Etrt) -> None:
    listed = etrt("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed][:4] == ["export", "build-engines", "run", "inspect"]


@pytest.mark.parametrize("command", ["export", "run", "inspect", "demo"])
def test_commands_have_help(command: str, etrt: Etrt) -> None:
    assert etrt(command, "--help").stdout.startswith(f"Usage: etrt {command}")


def test_help_imports_neither_torch_nor_rich(run_python: Callable[..., CompletedProcess[str]]) -> None:
    result = run_python(
        "import sys\n"
        "from executorch_tensorrt.cli import app\n"
        "try: app(['run', '--help'], prog_name='etrt')\n"
        "except SystemExit: print([name for name in ('torch', 'rich', 'executorch') if name in sys.modules])"
    )
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


@pytest.mark.parametrize(
    ("arguments", "begin", "end"),
    [
        (["fly"], "etrt: No such command 'fly'.", "See 'etrt --help'."),
        (["run"], "etrt run: Missing argument 'PROGRAM'.", "See 'etrt run --help'."),
        (["inspect", "--shiny"], "etrt inspect: No such option", "See 'etrt inspect --help'."),
        (["run", "--input"], "etrt run: Option '--input' requires an argument.", "See 'etrt run --help'."),
        (["doctor", "now"], "etrt doctor: Got unexpected extra argument (now).", "See 'etrt doctor --help'."),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments: list[str], begin: str, end: str, etrt: Etrt) -> None:
    told = etrt(*arguments, code=2).stderr.strip()
    assert told.startswith(begin)
    assert told.endswith(end)


def test_other_failures_have_exit_code_1(rows: Path, monkeypatch: pytest.MonkeyPatch, etrt: Etrt) -> None:
    def fail(path: Path) -> None:
        raise RuntimeError("the roof\nis on fire")

    monkeypatch.setattr(contents, "describe_program", fail)
    told = etrt("inspect", rows, code=1).stderr
    assert told == "etrt: RuntimeError: the roof is on fire; 'etrt --debug ...' shows the traceback.\n"
    assert "Traceback" in CliRunner().invoke(app, ["--debug", "inspect", str(rows)]).stderr


def test_debug_shows_where_a_mistake_was_found(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--debug", "inspect", str(tmp_path / "no.pte")])
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "read_program" in result.stderr


def test_etrt_is_installed_as_a_command(rows: Path) -> None:
    good = subprocess.run([ETRT, "inspect", rows], capture_output=True, text=True, timeout=60, check=False)
    assert good.returncode == 0
    assert "input_1" in good.stdout
    bad = subprocess.run([ETRT, "inspect", "missing.pte"], capture_output=True, text=True, timeout=60, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "etrt: no program at 'missing.pte'\n"


def test_a_closed_pipe_is_no_error_text(rows: Path) -> None:
    command = f"'{ETRT}' inspect --json '{rows}' | true"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert result.stderr == ""


def test_a_full_disk_is_told_in_one_line() -> None:
    result = subprocess.run(
        f"'{ETRT}' --help > /dev/full", shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr) == (1, "etrt: No space left on device\n")


def test_cmake_finds_the_package_where_etrt_says(etrt: Etrt) -> None:
    prefix = Path(etrt("--cmake-prefix-path").stdout.strip())
    assert (prefix / "share/cmake/executorch_tensorrt/executorch_tensorrt-config.cmake").is_file()
    assert (prefix / "lib/libexecutorch_tensorrt.so").is_file()


def test_a_folder_without_permission_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures.os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"takes no files: 'a.pte' can't be written"):
        failures.require_folder(tmp_path / "a.pte")
