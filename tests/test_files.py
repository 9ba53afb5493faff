"""Files that are written whole or not at all: their modes, and what others see meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_tensorrt.files import replacing, write_atomically


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_writing_never_changes_the_umask_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask is that of all threads"))
    write_atomically(tmp_path / "file", b"new")
    write_atomically(tmp_path / "file", b"newer")
    assert (tmp_path / "file").read_bytes() == b"newer"


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640), (0, 0o666)])
def test_new_file_has_the_mode_of_any_new_file(
    tmp_path: Path, umask: Callable[[int], int], mask: int, expected: int
) -> None:
    umask(mask)
    write_atomically(tmp_path / "file", b"new")
    assert mode(tmp_path / "file") == expected


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666, 0o755, 0o444])
def test_file_that_is_replaced_keeps_its_mode_and_is_private_meanwhile(
    tmp_path: Path, umask: Callable[[int], int], kept: int
) -> None:
    umask(0o022)
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(kept)
    with replacing(path) as temporary:
        temporary.write_bytes(b"new")
        assert mode(temporary) == 0o600
        assert path.read_bytes() == b"old"
    assert (mode(path), path.read_bytes()) == (kept, b"new")


def test_set_user_id_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o4755)
    write_atomically(path, b"new")
    assert mode(path) == 0o755


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(FileNotFoundError), replacing(path) as temporary:
        temporary.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").unlink()
    with pytest.raises(KeyError), replacing(path):
        raise KeyError
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_taken_name_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["taken", "free"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    (tmp_path / ".file.taken").write_bytes(b"another's")
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / ".file.taken").read_bytes() == b"another's"
    assert (tmp_path / "file").read_bytes() == b"new"


def test_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent/file"):
        write_atomically(tmp_path / "absent" / "file", b"new")
    with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
        write_atomically(tmp_path, b"new")


def test_link_to_a_file_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real, link, second = tmp_path / "elsewhere" / "real", tmp_path / "link", tmp_path / "second"
    real.write_bytes(b"old")
    real.chmod(0o600)
    link.symlink_to("elsewhere/real")
    second.symlink_to(link)
    write_atomically(second, b"new")
    assert (second.readlink(), link.readlink()) == (link, Path("elsewhere/real"))
    assert (real.read_bytes(), mode(real), real.is_symlink()) == (b"new", 0o600, False)


def test_link_to_nothing_gets_its_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("absent")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "absent").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match=r"(?s)levels of symbolic links.*one"):
        write_atomically(tmp_path / "one", b"new")


def test_named_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, b"new")
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)
    assert pipe.is_fifo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    before = Path("/dev/null").stat()
    for path in (Path("/dev/null"), tmp_path / "link"):
        write_atomically(path, b"new")
    assert Path("/dev/null").stat().st_ino == before.st_ino
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_open_pipe_is_written_to(folder: str) -> None:
    """As `-o >(command)` of a shell gives it."""
    reading, writing = os.pipe()
    try:
        write_atomically(f"{folder}/{writing}", b"new")
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("flags", [">", ">>"])
def test_standard_output_is_written_to_where_it_is(flags: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("before ")
    code = (
        "from executorch_tensorrt.files import write_atomically\n"
        "print('first', end=' ', flush=True); write_atomically('/dev/stdout', b'second '); print('third', end='')"
    )
    subprocess.run(["sh", "-c", f'"$1" -c "$2" {flags} "$3"', "sh", sys.executable, code, out], check=True, timeout=60)
    assert out.read_text() == ("before " if flags == ">>" else "") + "first second third"


def test_failure_writes_nothing_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(FileNotFoundError), replacing(pipe) as temporary:
            temporary.unlink()
        assert os.read(reading, 10) == b""
    finally:
        os.close(reading)
