"""`load`: a package with the engines that lie beside its code."""

# torch's compilers carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torch._inductor.package.package import load_package

from executorch_tensorrt import _native

FOLDER = "data/executorch_tensorrt"
"""Where in a package they are; PyTorch's loader passes it over. A file's name is the SHA-256 of what is in it."""

_LOCAL_HEADER = struct.Struct("<26xHH")


class StoredEngine(NamedTuple):
    """An engine in a package's file."""

    digest: str
    offset: int
    size: int


def load(path: str | os.PathLike[str], **options: Any) -> Any:
    """Load a package, large engines included; else as `torch._inductor.aoti_load_package`.

    Large engines are mapped for as long as the process lives. Do not write to the file meanwhile; replacing it with
    another is fine.

    Args:
        path: the package.
        options: further arguments of `torch._inductor.package.load_package`, such as `num_runners`.

    Raises:
        ValueError: it is no package, or damaged.
        OSError: it cannot be read.
    """
    try:
        engines = list(stored_engines(Path(path)))
    except (zipfile.BadZipFile, struct.error) as error:
        raise ValueError(f"'{os.fspath(path)}' is no package: {error}; save it again.") from error
    for engine in engines:
        _native.map_packaged_engine(os.fspath(path), engine.offset, engine.size, engine.digest)
    return load_package(os.fspath(path), **options)


def stored_engines(path: Path) -> Iterator[StoredEngine]:
    """The engines in a package's file.

    Raises:
        zipfile.BadZipFile, struct.error: it is no package.
    """
    with zipfile.ZipFile(path) as package, path.open("rb") as file:
        for info in package.infolist():
            folder, _, digest = info.filename.rpartition("/")
            if folder.partition("/")[2] == FOLDER:
                file.seek(info.header_offset)
                name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
                yield StoredEngine(digest, info.header_offset + _LOCAL_HEADER.size + name + extra, info.file_size)
