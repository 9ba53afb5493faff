"""Programs, ETRecords and sessions without what they tell of the machine and the source code that made them."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from executorch_tensorrt import program
from executorch_tensorrt.engines.blob import replace_metadata
from executorch_tensorrt.files import write_atomically
from executorch_tensorrt.profiling.session import SESSION_FILE, Delegate, Session
from executorch_tensorrt.program.blobs import read_engine

_PROGRAM = b"ET12"  # at byte 4
_ZIP = b"PK\x03\x04"
_ETRECORD = "ETRECORD_V0"
_PLACE_SPEC = "torchtrt_profile_path_prefix"


def strip(source: str | os.PathLike[str], output: str | os.PathLike[str]) -> str:
    """Writes a copy of a file without source lines, paths, and what machine made it.

    What it works with stays: names of inputs, modules and operators, engines and their ids, weights, times, versions.

    Args:
        source: a `.pte` program, an ETRecord, or a session (its file, or the folder that it is in).
        output: the file to write; not `source`.

    Returns:
        "program", "ETRecord" or "session".

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is of another kind, or is damaged, or `output` is the same file.
        OSError: `output` cannot be written.
    """
    path = Path(source)
    path = path / SESSION_FILE if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"nothing to strip at '{path}'")
    if Path(output).exists() and path.samefile(output):
        raise ValueError(f"the output is the file itself: got '{output}' for both; name another file")
    with path.open("rb") as file:
        begin = file.read(8)
    kind, stripped = _kind(path, begin)
    write_atomically(output, stripped(path))
    return kind


def _kind(path: Path, begin: bytes) -> tuple[str, Callable[[Path], bytes]]:
    if begin[4:8] == _PROGRAM:
        return "program", _program
    if begin.startswith(_ZIP):
        return "ETRecord", _etrecord
    if begin.lstrip().startswith(b"{"):
        return "session", _session
    raise ValueError(
        f"'{path}' is nothing to strip: got a file that begins with {begin!r}, allowed a .pte program, an ETRecord, or "
        "the session that 'etrt profile' wrote; ETDumps and traces have no paths and no source lines."
    )


def _session(path: Path) -> bytes:
    session = Session.load(path)
    stripped = replace(session, machine={}, delegates=[_without_locations(delegate) for delegate in session.delegates])
    return json.dumps(stripped, default=vars, allow_nan=False).encode()


def _without_locations(delegate: Delegate) -> Delegate:
    if delegate.engine is None:
        return delegate
    sources = {handle: replace(source, location="") for handle, source in delegate.engine.sources.items()}
    return replace(delegate, engine=replace(delegate.engine, sources=sources))


def _program(path: Path) -> bytes:
    """Nothing moves, so that everything lies where the file says; zeros and spaces take the place of what goes."""
    data = bytearray(path.read_bytes())
    hidden: list[bytes] = []
    for method in program.read_program(data).methods:
        for delegate in method.delegates:
            if delegate.backend_id == program.BACKEND_ID:
                hidden += [value for key, value in delegate.compile_specs if key == _PLACE_SPEC and value]
                _strip_blob(path, delegate)
    return _without_texts(bytes(data), hidden)


def _without_texts(data: bytes, hidden: Iterable[bytes]) -> bytes:
    """Of compile specs: the key of a place to write to, and the place. They stand behind their length."""
    for text in (_PLACE_SPEC.encode(), *hidden):
        length = struct.pack("<I", len(text))
        data = data.replace(length + text, length + b" " * len(text))
    return data


def _strip_blob(path: Path, delegate: program.Delegate) -> None:
    before = read_engine(delegate)
    digest = before.sha256
    # Torch-TensorRT's own text may hold its settings, folders of caches among them. Nothing that runs reads it.
    metadata = {**before.written, "serialized_metadata": ""}
    if record := before.written_record:
        metadata["executorch_tensorrt"] = {**record, "sources": _without("location", record.get("sources", {}))}
    try:
        replace_metadata(delegate.blob, metadata)
    except ValueError:
        raise ValueError(f"'{path}' has metadata that can't be written shorter; export it again") from None
    if read_engine(delegate).sha256 != digest:
        raise ValueError(f"'{path}' is damaged: an engine lies in its own metadata; export it again")


def _etrecord(path: Path) -> bytes:
    try:
        with ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        stripped = {name: _member(data) for name, data in members.items()}
    except (BadZipFile, EOFError, NotImplementedError, RecursionError, ValueError, zlib.error) as error:
        raise ValueError(f"'{path}' is damaged: {error}; save it again") from None
    if _ETRECORD not in stripped:
        raise ValueError(f"'{path}' is no ETRecord: got a ZIP file without '{_ETRECORD}'; give another file")
    result = BytesIO()
    with ZipFile(result, "w") as archive:
        for name, data in stripped.items():
            archive.writestr(ZipInfo(name), data)  # without the time
    return result.getvalue()


def _member(data: bytes) -> bytes:
    """A file of an ETRecord: graphs are JSON, what they compute with is not."""
    if not data.startswith((b"{", b"[")):
        return data
    return json.dumps(_without("stack_trace", json.loads(data))).encode()


def _without(name: str, value: Any) -> Any:
    """JSON without texts of this name, however deep."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _without(name, item) for key, item in items if key != name or not isinstance(item, str)}
    return [_without(name, item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


__all__ = ["strip"]
