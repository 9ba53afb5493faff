"""The bytes of one delegate: header, JSON metadata, engine. The layout is Torch-TensorRT's TR01/TR02."""

from __future__ import annotations

import hashlib
import json
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_HEADER = struct.Struct("<4sIIIQ8s")
_ALIGNMENT = 16
_RESERVED = b"\x01" + bytes(7)


@dataclass(frozen=True)
class Binding:
    """One input or output of an engine; a dynamic dim is -1."""

    name: str
    dtype: str
    shape: Sequence[int]
    is_input: bool


def engine_id(engine: bytes) -> str:
    """The name of an engine: the first 12 hex digits of its SHA-256."""
    return hashlib.sha256(engine).hexdigest()[:12]


def pack_blob(magic: bytes, bindings: Sequence[Binding], ours: dict[str, Any], engine: bytes) -> bytes:
    """Serialise a delegate.

    Args:
        magic: four bytes that say which runtime loads the engine.
        bindings: inputs in the order of the delegate's arguments, then outputs.
        ours: the value of the metadata key `executorch_tensorrt`. It is last because Torch-TensorRT's readers pass
            over what follows the keys they know.
        engine: what the engine builder made.
    """
    metadata = {
        "io_bindings": [
            {"name": item.name, "dtype": item.dtype, "shape": list(item.shape), "is_input": item.is_input}
            for item in bindings
        ],
        "aliased_io": [],
        "hardware_compatible": False,
        "device_id": 0,
        "serialized_metadata": "",
        "target_platform": f"linux_{platform.machine()}",
        "executorch_tensorrt": ours,
    }
    text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=True).encode()
    end = _HEADER.size + len(text)
    offset = -(-end // _ALIGNMENT) * _ALIGNMENT
    header = _HEADER.pack(magic, _HEADER.size, len(text), offset, len(engine), _RESERVED)
    return b"".join((header, text, bytes(offset - end), engine))


def unpack_metadata(blob: bytes) -> dict[str, Any]:
    """The JSON metadata of a blob that `pack_blob` made."""
    _, start, size, *_ = _HEADER.unpack_from(blob)
    return json.loads(blob[start : start + size])


def unpack_engine(blob: bytes) -> bytes:
    """The engine bytes of a blob that `pack_blob` made."""
    _, _, _, start, size, _ = _HEADER.unpack_from(blob)
    return blob[start : start + size]
