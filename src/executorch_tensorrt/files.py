"""Finding programs, and writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


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


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[Path]:
    """A file to write that takes the place of `path` when the block ends well: a reader sees the old or the new file.

    It has the mode of the file that it replaces, or that of any new file.

    Raises:
        OSError: it cannot be written; then `path` is as it was.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give a file", str(target))
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        temporary = _create_beside(target, 0o666 if mode is None else 0o600)
    except OSError as error:  # it would name the temporary file
        raise type(error)(error.errno, error.strerror, str(target)) from None
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def _create_beside(target: Path, mode: int) -> Path:
    """A new file in the target's folder. The kernel applies the umask, which a process can't read without changing it
    for all of its threads."""
    while True:
        path = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}"
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
            return path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` to `path` whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
