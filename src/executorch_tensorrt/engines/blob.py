"""The bytes of one delegate: header, JSON metadata, engine. The layout is Torch-TensorRT's TR01/TR02."""

from __future__ import annotations

import hashlib
import json
import platform
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_HEADER = struct.Struct("<4sIIIQ8s")
_ALIGNMENT = 16
_RESERVED = b"\x01" + bytes(7)

PLATFORM = f"linux_{platform.machine()}"
"""What an engine that is built here runs on."""


@dataclass(frozen=True)
class Binding:
    """One input or output of an engine; a dynamic dim is -1."""

    name: str
    dtype: str
    shape: Sequence[int]
    is_input: bool


@dataclass(frozen=True)
class AliasedIo:
    """An output that an engine writes in place of an input; `kind` is Torch-TensorRT's word for why."""

    output: str
    input: str
    kind: str


@dataclass(frozen=True)
class BlobMetadata:
    """The metadata keys that Torch-TensorRT knows.

    Attributes:
        bindings: inputs in the order of the delegate's arguments, then outputs.
        aliased_io: outputs that are written in place of inputs.
        hardware_compatible: whether the engine runs on other GPUs than the one that it was built for.
        device_id: the GPU that the engine was built on.
        serialized_metadata: Torch-TensorRT's own text. It is kept, and never interpreted.
        target_platform: such as "linux_x86_64".
    """

    bindings: Sequence[Binding]
    aliased_io: Sequence[AliasedIo] = ()
    hardware_compatible: bool = False
    device_id: int = 0
    serialized_metadata: str = ""
    target_platform: str = PLATFORM


def engine_id(engine: bytes) -> str:
    """The name of an engine: the first 12 hex digits of its SHA-256."""
    return hashlib.sha256(engine).hexdigest()[:12]


def pack_blob(magic: bytes, metadata: BlobMetadata, ours: dict[str, Any], engine: bytes) -> bytes:
    """Serialise a delegate.

    Args:
        magic: four bytes that say which runtime loads the engine.
        metadata: Torch-TensorRT's part of the metadata.
        ours: the value of the metadata key `executorch_tensorrt`. It is last because Torch-TensorRT's readers pass
            over what follows the keys they know.
        engine: what the engine builder made.
    """
    theirs = asdict(metadata)
    record = {"io_bindings": theirs.pop("bindings"), **theirs, "executorch_tensorrt": ours}
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=True).encode()
    end = _HEADER.size + len(text)
    offset = -(-end // _ALIGNMENT) * _ALIGNMENT
    header = _HEADER.pack(magic, _HEADER.size, len(text), offset, len(engine), _RESERVED)
    return b"".join((header, text, bytes(offset - end), engine))


def replace_metadata(blob: memoryview, metadata: dict[str, Any]) -> None:
    """Write other metadata into a blob; nothing moves.

    Raises:
        ValueError: it takes more bytes than what is there.
    """
    magic, start, size, *rest = _HEADER.unpack_from(blob)
    text = json.dumps(metadata, separators=(",", ":")).encode()
    if len(text) > size:  # characters beyond ASCII take more when they are escaped
        text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode()
    if len(text) > size:
        raise ValueError(f"got metadata of {len(text)} bytes, allowed {size}")
    blob[start : start + size] = text.ljust(size, b"\0")
    _HEADER.pack_into(blob, 0, magic, start, len(text), *rest)


def unpack_metadata(blob: bytes) -> dict[str, Any]:
    """The JSON metadata of a blob that `pack_blob` made."""
    _, start, size, *_ = _HEADER.unpack_from(blob)
    return json.loads(blob[start : start + size])
