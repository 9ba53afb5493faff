"""The files of a cache's entry. Others may write there too: no link is followed, no pipe is waited for."""

from __future__ import annotations

import errno
import fcntl
import grp
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from executorch_tensorrt.files import sha256_of

SHARED = "ETRT_SHARED_ENGINE_CACHE"
WAIT = "ETRT_ENGINE_CACHE_WAIT"
_WAIT_SECONDS = 3600.0
_POLL_SECONDS = 0.2
_LARGEST_TEXT = 64 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class EntryFolder:
    """A folder below that of the cache. Each operation opens it anew and stays in it."""

    path: Path

    def exists(self, name: str) -> bool:
        """Whether there is something of that name, even if it can't be read."""
        return os.path.lexists(self.path / name)

    def read(self, name: str, largest: int | None = None) -> bytes | None:
        """A whole file; None if there is none.

        Raises:
            ValueError: it is a link or no regular file, is larger than `largest`, or others could have written it.
            OSError: it can't be read.
        """
        with self._opened(name) as file:
            if file is None:
                return None
            size = os.fstat(file.fileno()).st_size
            if largest is not None and size > largest:
                raise ValueError(f"'{self.path / name}' is too large: got {size} bytes, allowed {largest}; remove it.")
            return file.read()

    def read_text(self, name: str) -> bytes | None:
        """A file that people can read, which has a limit. Raises what `read` raises."""
        return self.read(name, _LARGEST_TEXT)

    def sha256(self, name: str) -> str | None:
        """Of a file; None if there is none. Raises what `read` raises."""
        with self._opened(name) as file:
            return None if file is None else sha256_of(file)

    def copy_out(self, name: str, target: Path) -> None:
        """A copy of a file, if there is one, which nobody else writes. Raises what `read` raises."""
        with self._opened(name) as file:
            if file is not None:
                with target.open("wb") as copy:
                    shutil.copyfileobj(file, copy, 1 << 20)

    def write(self, name: str, data: bytes | Path) -> None:
        """A file with these bytes, or those of a file, whole or not at all, whatever was there."""
        folder = self._made_folder()
        temporary = f".{name}.{secrets.token_hex(6)}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, self._mode & 0o666, dir_fd=folder), "wb") as file:
                if isinstance(data, Path):
                    with data.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                else:
                    file.write(data)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:  # it would name the temporary file
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise type(error)(error.errno, error.strerror, str(self.path / name)) from None
        finally:
            os.close(folder)

    def remove_left(self, name: str) -> None:
        """Removes what writes of a file left behind that were killed. The caller holds the lock."""
        for left in self.path.glob(f".{name}.*"):
            with suppress(OSError):
                left.unlink()

    @contextmanager
    def lock(self, tell: Callable[[str], None]) -> Generator[None]:
        """Holds the entry's lock, which ends with the process.

        Raises:
            ValueError: `lock` is a link or no regular file.
            RuntimeError: another holds it for longer than one waits.
        """
        folder = self._made_folder()
        try:
            number = self._open_lock(folder)
        finally:
            os.close(folder)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise ValueError(f"'{self.path / 'lock'}' is no regular file, which an engine cache has; remove it.")
            self._wait_for(file, tell)
            yield

    def _open_lock(self, folder: int) -> int:
        flags = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            try:
                return os.open("lock", flags | os.O_RDWR, 0o666, dir_fd=folder)
            except PermissionError:  # another's, in a cache that is shared; NFS alone wants it to be writable
                return os.open("lock", flags | os.O_RDONLY, 0o666, dir_fd=folder)
        except OSError as error:
            raise self._refused("lock", error) from None

    def _wait_for(self, file: BinaryIO, tell: Callable[[str], None]) -> None:
        limit = float(os.environ.get(WAIT) or _WAIT_SECONDS)
        begin, told = time.monotonic(), False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() - begin >= limit:
                    raise RuntimeError(
                        f"another build holds the engine: got no end of it in {limit:g} s, wanted '{self.path}'; end "
                        f"it (`fuser {self.path / 'lock'}` names it), or wait longer with {WAIT}=SECONDS."
                    ) from None
            if not told:
                tell(f"waiting for another build of engine {self.path.name[:12]}")
                told = True
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _opened(self, name: str) -> Generator[BinaryIO | None]:
        folder = self._open_folder()
        if folder is None:
            yield None
            return
        try:
            number = os.open(name, _READ, dir_fd=folder)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise self._refused(name, error) from None
        finally:
            os.close(folder)
        with os.fdopen(number, "rb") as file:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"'{self.path / name}' is no regular file, which an engine cache has; remove it.")
            require_own(self.path / name, found, owners_of(self.path.parent))
            yield file

    @property
    def _mode(self) -> int:
        """What the cache's folder lets others do, its entries do too, but no more."""
        return self.path.parent.stat().st_mode & 0o777

    def _made_folder(self) -> int:
        """Its descriptor; it is made if need be."""
        self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.path.mkdir(mode=self._mode, exist_ok=True)
        folder = self._open_folder()
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        return folder

    def _open_folder(self) -> int | None:
        """Its descriptor; None if there is no folder."""
        try:
            number = os.open(self.path, _READ | os.O_DIRECTORY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused("", error) from None
        try:
            require_own(self.path, os.fstat(number), owners_of(self.path.parent))
        except ValueError:
            os.close(number)
            raise
        return number

    def _refused(self, name: str, error: OSError) -> Exception:
        path = self.path / name
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink():
            return ValueError(f"'{path}' is a link, which an engine cache has none of; remove it.")
        return type(error)(error.errno, error.strerror, str(path))


def require_own_cache(cache: Path) -> None:
    """Whether others may put engines into a cache, which run as code in the process of who takes them.

    Raises:
        ValueError: they may, and nobody said that it is meant.
    """
    if cache.is_dir():
        require_own(cache, cache.stat(), owners_of(cache))


def owners_of(cache: Path) -> set[int]:
    """Whose files are taken: the caller's, root's, and those of the folder's owner, unless a stranger could have made a
    folder of this name."""
    found = {0, os.geteuid()}
    with suppress(OSError):
        if not any(parent.stat().st_mode & stat.S_IWOTH for parent in cache.absolute().parents):
            found.add(cache.stat().st_uid)
    return found


def require_own(path: Path, found: os.stat_result, owners: set[int]) -> None:
    """Raises:
    ValueError: somebody but the owners may have written a file or folder, and nobody said that it is meant.
    """
    if os.environ.get(SHARED, "0") not in ("", "0"):
        return
    if found.st_uid not in owners:
        problem = f"got one of user {found.st_uid}"
    elif found.st_mode & stat.S_IWOTH:
        problem = f"got mode {found.st_mode & 0o777:04o}, which lets everyone write"
    elif found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid, found.st_uid):
        problem = f"got mode {found.st_mode & 0o777:04o}, which lets group {found.st_gid} write"
    else:
        return
    raise ValueError(
        f"an engine of others would become part of the program: {problem} at '{path}', allowed what you and root alone "
        f"write; change that, or set {SHARED}=1 if you trust all who write there as you trust code."
    )


def _is_private(group: int, user: int) -> bool:
    """Whether a group has one member, as many systems make for each user. One that is not known here is judged by its
    number."""
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return group == user
    return group == user and len(set(entry.gr_mem)) <= 1
