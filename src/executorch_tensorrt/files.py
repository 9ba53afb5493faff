"""Finding programs, and writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[Path]:
    """A file to write that takes the place of `path` when the block ends well: a reader sees the old or the new file.

    Raises:
        OSError: it cannot be written; then `path` is as it was.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give a file", str(target))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    except OSError as error:  # it would name the temporary file
        raise type(error)(error.errno, error.strerror, str(target)) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` to `path` whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
