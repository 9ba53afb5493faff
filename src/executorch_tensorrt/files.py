"""Finding programs, and writing files whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_MOST_LINKS = 40  # as the kernel follows


def program_file(path: str | os.PathLike[str]) -> Path:
    """The path of a `.pte` file to read.

    Raises:
        FileNotFoundError: there is no file at that path.
        IsADirectoryError: there is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"'{target}' is a folder; give a .pte file")
    if not target.is_file():
        raise FileNotFoundError(f"no program at '{target}'")
    return target


def sha256_of(file: BinaryIO) -> str:
    """Of what is left to read of a file, in hexadecimal."""
    digest = hashlib.sha256()
    while part := file.read(1 << 20):
        digest.update(part)
    return digest.hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[Path]:
    """A file to write that takes the place of `path` when the block ends well: a reader sees the old or the new file.

    It has the mode of the file that it replaces, or that of any new file. Where `path` is a link to a file, that file
    is replaced and the link stays. What is no regular file (a device, a pipe, `/dev/stdout`) is written to as it is.

    Raises:
        OSError: it cannot be written; then `path` is as it was.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give a file", str(target))
    if is_written_through(target):
        with tempfile.TemporaryDirectory(prefix="etrt-") as folder:
            yield Path(folder) / "file"
            _write_through(Path(folder) / "file", target)
        return
    try:
        behind = _behind_links(target)
        mode = behind.stat().st_mode & 0o777 if behind.exists() else None
        temporary = _create_beside(behind, 0o666 if mode is None else 0o600)
    except OSError as error:  # it would name the temporary file
        raise type(error)(error.errno, error.strerror, str(target)) from None
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(behind)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` to `path` whole or not at all; see `replacing`."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def is_written_through(path: str | os.PathLike[str]) -> bool:
    """Whether `path` leads to a device, a pipe, or what this process has open: nothing that a file could replace."""
    try:
        behind = _behind_links(Path(path))
        return _own_descriptor(behind) is not None or not stat.S_ISREG(behind.stat().st_mode)
    except OSError:
        return False


def _write_through(source: Path, target: Path) -> None:
    number = _own_descriptor(_behind_links(target))
    # Opened anew, a file that is open would be written from its begin.
    opened = os.open(target, os.O_WRONLY | os.O_CLOEXEC) if number is None else os.dup(number)
    with source.open("rb") as read, os.fdopen(opened, "wb") as write:
        shutil.copyfileobj(read, write)


def _behind_links(path: Path) -> Path:
    """What a path leads to, but for the link of an open descriptor, whose text leads nowhere."""
    for _ in range(_MOST_LINKS):
        if _own_descriptor(path) is not None or not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _own_descriptor(path: Path) -> int | None:
    """The number in /proc/self/fd/1, or in /dev/fd/1, which is the same."""
    if not (path.name.isascii() and path.name.isdecimal()):
        return None
    return int(path.name) if os.path.realpath(path.parent) == f"/proc/{os.getpid()}/fd" else None


def _create_beside(target: Path, mode: int) -> Path:
    """A new file in the target's folder. The kernel applies the umask, which a process can't read without changing it
    for all of its threads."""
    while True:
        path = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}"
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
            return path
