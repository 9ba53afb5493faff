"""What etrt_runner writes, over whatever is there: files are replaced whole, devices and pipes are written to."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from executorch_tensorrt.profiling.etdump import read_etdump

if TYPE_CHECKING:
    from conftest import Runner

Npy = Callable[[object], Path]


@pytest.fixture
def given(rows: Path, npy: Npy) -> list[object]:
    return [rows, "--input", npy(np.ones((2, 4), np.float32))]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_runner_keeps_the_mode_of_a_file_and_a_link_to_it(given: list[object], runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    dump, link = tmp_path / "elsewhere" / "a.etdp", tmp_path / "link.etdp"
    dump.write_bytes(b"old")
    dump.chmod(0o600)
    link.symlink_to("elsewhere/a.etdp")
    runner(*given, "--etdump", "link.etdp")
    assert read_etdump(dump)
    assert (mode(dump), link.is_symlink()) == (0o600, True)
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["a.etdp"]


def test_runner_writes_to_a_device_and_leaves_it_one(given: list[object], runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    for path in ("/dev/null", "null"):
        runner(*given, "--etdump", path)
    assert Path("/dev/null").is_char_device()


def test_runner_writes_to_a_named_pipe_and_leaves_it_one(given: list[object], runner: Runner, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        runner(*given, "--etdump", pipe)
        assert os.read(reading, 12)[8:] == b"ED00"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


def test_runner_replaces_a_link_to_nothing_by_what_it_leads_to(
    given: list[object], runner: Runner, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("absent")
    runner(*given, "--etdump", "link")
    assert read_etdump(tmp_path / "absent")


def test_runner_refuses_links_in_a_circle_and_folders(given: list[object], runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "folder").mkdir()
    assert "Too many levels of symbolic links" in runner(*given, "--etdump", "one", code=2).stderr
    assert "Is a directory" in runner(*given, "--etdump", "folder", code=2).stderr


@pytest.mark.parametrize("flags", [">", ">>"])
def test_runner_writes_to_standard_output_where_it_is(flags: str, given: list[object], tmp_path: Path) -> None:
    from executorch_tensorrt.native_files import native_folder

    out = tmp_path / "out"
    out.write_bytes(b"before")
    command = f'"$@" --etdump /dev/stdout --json {flags} out'
    runner = native_folder() / "bin" / "etrt_runner"
    subprocess.run(
        ["sh", "-c", command, "sh", runner, *map(str, given)], check=True, timeout=60, cwd=tmp_path, capture_output=True
    )
    written = out.read_bytes()
    assert written.startswith(b"before") == (flags == ">>")
    assert b"ED00" in written
    assert written.rstrip().endswith(b"}")
